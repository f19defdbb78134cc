"""The turn engine, and what it needs for one turn: what memory gives, the steps of the model, the tools."""
