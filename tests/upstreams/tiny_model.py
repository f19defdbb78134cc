"""Write a model with random weights, to test a real server's wire format. Run this file as a script, with the path of
the model, using an interpreter that has `gguf`."""

import sys

import gguf  # type: ignore[import-not-found]  # not one of our requirements
import numpy as np

WIDTH, INNER, HEADS, CONTEXT = 32, 64, 4, 32_768
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *map(chr, range(33, 127))]
KINDS = [2, 3, 3, *[6] * 256, *[1] * 95]  # unknown, control, bytes, words


def write(path: str) -> None:
    """Write a model with one layer and one token per character."""
    numbers = np.random.default_rng(1)
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(INNER)
    file.add_block_count(1)
    file.add_head_count(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("llama")
    file.add_token_list(TOKENS)
    file.add_token_scores([0.0] * len(TOKENS))
    file.add_token_types(KINDS)
    file.add_chat_template(TEMPLATE)
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output": (len(TOKENS), WIDTH)}
    shapes |= {f"blk.0.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    shapes |= {"blk.0.ffn_gate": (INNER, WIDTH), "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER)}
    for name, shape in shapes.items():
        file.add_tensor(f"{name}.weight", (numbers.standard_normal(shape) * 0.3).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        file.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


if __name__ == "__main__":
    write(sys.argv[1])
