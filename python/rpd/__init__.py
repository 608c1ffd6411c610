"""What Python programs need of rpd: the recorder (`rpd.library`), the command (`rpd.command`), the format (`rpd.schema`).

Programs use rpdTracerControl, and the rocpd modules under the names that rocmProfileData gave them.
"""
