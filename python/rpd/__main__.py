"""python3 -m rpd VERB ...: the rpd command."""

from rpd.command import main

main()
