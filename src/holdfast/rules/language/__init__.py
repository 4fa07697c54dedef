"""The language of rules: which items change, and how. It is pure: nothing here reads or writes anything outside."""
