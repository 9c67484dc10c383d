from sfumato.cli.main import main

main()
