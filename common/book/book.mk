# The book as a site, a PDF, an EPUB and slides. The Makefile includes this file.

# A page is named by its path without .html. Its document is PAGE.md; or README.md, of which index is
# all, and another name the part below that heading. contents.md has the order.
BOOK    = $(BUILD)/book
ROUGH   = $(BUILD)/rough# what the filter has made of each page
LISTED := $(shell cd common/book && sed -n '/^- /,$$p' contents.md | grep -oE '\]\([^)]+' | cut -c 3- | \
    xargs realpath -m --relative-to=../.. | sed -E 's/README\.md\#//; s/\.md$$//; s/README$$/index/')
DECKS   = $(filter %/slides,$(LISTED))
ORDER   = $(filter-out %/slides,$(LISTED))
LINKED  = $(patsubst %.md,%,$(wildcard 0*/exercises/*.md loadtest/results/*/table.md))
QUOTED  = $(wildcard 0*/*.c 0*/ladder/*.c 0*/sharing/*.c 0*/exercises/*.c common/*.[ch])
DRAWN   = $(filter-out build/% public/book/%,$(wildcard $(addsuffix .svg,*/* */*/* */*/*/*) common/book/*.png))
document = $(firstword $(wildcard $(1).md) $(patsubst ./%,%,$(dir $(1))README.md))

SITE    = $(patsubst %,$(BOOK)/%.html,$(ORDER) $(LINKED))
CODE    = $(QUOTED:%=$(BOOK)/%.html)
SLIDES  = $(DECKS:%=$(BOOK)/%.pdf)
PRINTED = $(ORDER:%=$(ROUGH)/%.json)
TITLE   = -M title='ZeroHTTPd: one guestbook, seven ways to wait' -M lang=en \
    -M author='The ZeroHTTPd authors' -M edition='Version $(EDITION)' -M date='$(DATE)'
EDITION = $(shell sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
DATE    = $(shell git log -1 --format=%cs 2>/dev/null || date -I)

# pandoc drops what is behind a language, and here that is the file which is quoted.
NAMED   = sed -E 's/^( *```)([a-z]+) ([^ ]+)$$/\1{.\2 file="\3"}/' $<
FILTER  = PAGE=$* SOURCE=$< ROUGH=$(ROUGH) PAGES='$(1)' $(if $(SOURCE_URL),SOURCE_URL='$(SOURCE_URL:/=)') MODE=$(2) $(3) \
    pandoc -f gfm+attributes -L common/book/filter.lua
PAGES   = $(ORDER) $(LINKED) $(QUOTED) $(DECKS)

SHOW = $(if $(V),,@)# a page of code or a drawing is not worth a line

## book         the book in build/book: a site, slides, a PDF, an EPUB
book: need-book book-files
	@rm -rf public/book && cp -R $(BOOK) public/ || echo 'public/ stays without it: it is read-only'
	@echo 'The book is in $(BOOK): open $(BOOK)/index.html, or zerohttpd.pdf, or zerohttpd.epub'

book-files: $(SITE) $(CODE) $(SLIDES) $(DRAWN:%=$(BOOK)/%) $(BOOK)/search.js \
    $(BOOK)/book.css $(BOOK)/page.js $(BOOK)/zerohttpd.pdf $(BOOK)/zerohttpd.epub

TOOLS = common/book/filter.lua common/book/contents.md $(wildcard common/book/*.html) common/README.md
$(SITE): $(BOOK)/%.html: $$(call document,$$*) $(TOOLS)
	@mkdir -p $(@D) $(dir $(ROUGH)/$*)
	$(TELL)$(NAMED) | $(call FILTER,$(PAGES),site,INDEX=$(ROUGH)/$*.search) \
	    -t html5 --template common/book/page.html --toc --toc-depth 2 -o $@

$(CODE): $(BOOK)/%.html: % $(TOOLS)
	@mkdir -p $(@D)
	$(SHOW){ printf '# %s\n\n~~~~~~{#L .c .lines}\n' $<; cat $<; echo '~~~~~~'; } | \
	    $(call FILTER,$(PAGES),site) -t html5 --template common/book/page.html -o $@

$(SLIDES): $(BOOK)/%.pdf: %.md $(TOOLS) common/book/book.css
	@mkdir -p $(@D) $(ROUGH)
	$(TELL)$(NAMED) | $(call FILTER,,paper) -t dzslides --slide-level 2 \
	    --template common/book/print.html | weasyprint -q -u . - $@

$(DRAWN:%=$(BOOK)/%): $(BOOK)/%: %
	@mkdir -p $(@D)
	$(SHOW)cp $< $@

$(BOOK)/book.css $(BOOK)/page.js: $(BOOK)/%: common/book/%
	@mkdir -p $(@D)
	$(SHOW)cp $< $@

$(BOOK)/search.js: $(SITE)
	$(SHOW){ echo 'const sections = ['; cat $(patsubst $(BOOK)/%.html,$(ROUGH)/%.search,$(SITE)); echo '];'; } >$@

# ---- one file for all -----------------------------------------------------------------------

$(PRINTED): $(ROUGH)/%.json: $$(call document,$$*) $(TOOLS)
	@mkdir -p $(@D)
	$(SHOW)$(NAMED) | $(call FILTER,$(ORDER),book) -t json -o $@

$(ROUGH)/book.html: $(PRINTED)
	$(SHOW)pandoc -f json $(PRINTED) -t html5 $(TITLE) \
	    --template common/book/print.html --toc --toc-depth 2 -o $@

$(BOOK)/zerohttpd.pdf: $(ROUGH)/book.html common/book/book.css
	$(TELL)weasyprint -q -u . $< $@

$(BOOK)/zerohttpd.epub: $(PRINTED)
	$(TELL)pandoc -f json $(PRINTED) -t epub3 $(TITLE) --toc --toc-depth 2 -o $@

.PHONY: book book-files
