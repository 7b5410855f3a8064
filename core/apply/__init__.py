"""What each event does to the state. Replay and live calls share this code, so it makes no choice."""
