// The reader's place in the conversation: at its end, where new text is followed, or further up.

const NEAR_END = 80; // pixels

export class Place {
  constructor(log, newText) {
    this.log = log;
    this.newText = newText;
    this.following = false;
    log.addEventListener("scroll", () => this.look(), { passive: true });
    newText.addEventListener("click", () => this.toEnd());
    // A toast or a longer message shrinks the log; keep it scrolled to the end if it was.
    new ResizeObserver(() => this.following && this.toEnd()).observe(log);
  }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
    this.look();
  }

  // Notes whether the reader is at the end.
  look() {
    this.following = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR_END;
    if (this.following) this.newText.hidden = true;
  }

  // After new text: shows it, or says that it is there.
  keep() {
    if (this.following) this.log.scrollTop = this.log.scrollHeight;
    else this.newText.hidden = false;
  }
}
