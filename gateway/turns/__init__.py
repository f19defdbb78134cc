"""The turn engine and its parts: memory injection, the model's tool loop, our tools, and live turns."""
