# Thin entry points: every target is one line over `python -m tools`.
PYTHON ?= python3
TOOLS = $(PYTHON) -m tools

.PHONY: help book serve preview notebooks figures fixtures bench test lint clean

help:
	@$(TOOLS) help
book:
	@$(TOOLS) book $(if $(PROFILE),--profile $(PROFILE)) $(if $(ENGINE),--engine $(ENGINE))
serve:
	@$(TOOLS) serve $(if $(PORT),--port $(PORT))
preview:
	@$(TOOLS) preview $(if $(PORT),--port $(PORT))
notebooks:
	@$(TOOLS) notebooks $(if $(FORCE),--force)
figures:
	@$(TOOLS) figures $(if $(PARAMETERS),--parameters $(PARAMETERS)) $(if $(OUTPUT),--output $(OUTPUT))
fixtures:
	@$(TOOLS) fixtures
bench:
	@$(TOOLS) bench $(if $(OUTPUT),--output $(OUTPUT)) $(SUITE)
test:
	@$(TOOLS) test
lint:
	@$(TOOLS) lint $(if $(FIX),--fix)
clean:
	@$(TOOLS) clean
