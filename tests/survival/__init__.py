"""What happens when files are broken, processes killed, or writers meet."""
