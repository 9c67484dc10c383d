from sfumato.cli.main import run

run()
