"""The paper's figures and tables, measured again. Outside the wheel; each file says its commands."""
