-- What a page of the book needs beyond pandoc. Links lead from page to page, quoted code to its
-- source, fork(2) and RFC 9112 to where they are explained. A part of a document becomes a page.
-- The site's pages get the contents beside them, and lines for the search.
--
-- In the environment, from book.mk: PAGE is the page's path without .html, SOURCE its document, PAGES
-- all pages. MODE is site, paper (slides) or book (one file for all pages). INDEX
-- takes the search's lines, ROUGH is where drawings for paper go.
-- SOURCE_URL is the address of the project's files, if there is one.

local env = os.getenv
local page, source, mode = env 'PAGE', env 'SOURCE', env 'MODE'
local paper = mode == 'book' or mode == 'paper'
local folder = pandoc.path.directory(source)
local root = ('../'):rep(select(2, page:gsub('/', '')))
local text_of = pandoc.utils.stringify
local LIST = 'common/book/contents.md'
local CUT = 'common/README.md' -- those of its headings that PAGES names begin a page,
local REST = 'common/' .. 'index' -- and what is left is another

local there = {}
for each in env 'PAGES':gmatch '%S+' do
  there[each] = true
end

local function read(path)
  local file = io.open(path)
  local text = file and file:read 'a'
  if file then file:close() end
  return text
end

-- ---- links ------------------------------------------------------------------------------------

local function from_top(from, path)
  local names = {}
  for name in (from .. '/' .. path):gmatch '[^/]+' do
    if name == '..' then
      table.remove(names)
    elseif name ~= '.' then
      table.insert(names, name)
    end
  end
  return table.concat(names, '/')
end

local part_of = {} -- an anchor of CUT: the page it is on
local part = REST
for _, block in ipairs(pandoc.read(read(CUT), 'gfm').blocks) do
  if block.t == 'Header' then
    local name = 'common/' .. block.identifier
    part = there[name] and name or block.level < 3 and REST or part
    part_of[block.identifier] = part
  end
end

local function page_of(path, anchor) -- nil: it has none
  if path == CUT and part_of[anchor] then return part_of[anchor] end
  local name = path:gsub('%.md$', ''):gsub('README$', 'index')
  local index = from_top(name, 'index')
  return there[name] and name or there[index] and index or nil
end

local function id(of, anchor) -- in one file for all; an EPUB's may not begin with a digit
  local name = 'p-' .. of:gsub('/index$', ''):gsub('%W', '-')
  return anchor == '' and name or name .. '--' .. anchor
end

local function href(target, from) -- nil: there is nothing to lead to
  if target:match '^%a[%w+.-]*:' then return target end
  local path, anchor = target:match '^([^#]*)#?(.*)$'
  path = path == '' and source or from_top(from, path)
  local to = page_of(path, anchor)
  if path:match '%.svg$' and not paper then return root .. path end
  if not to or mode == 'paper' then return env 'SOURCE_URL' and env 'SOURCE_URL' .. '/' .. path end
  if to:match '[^/]*$' == anchor then anchor = '' end -- a part's own heading
  if mode == 'book' then return '#' .. id(to, anchor) end
  return root .. to .. (to:match 'slides$' and '.pdf' or '.html') .. (anchor == '' and '' or '#' .. anchor:gsub('^L(%d+).*', 'L-%1'))
end

-- ---- names that are links -----------------------------------------------------------------------

local NOT_LINUX = { kevent = true, kqueue = true, ktrace = true, procctl = true, truss = true }

local function manual(text)
  local before, name, section, after = text:match '^([^%w_]*)([%l_][%w_.-]*)%(([1-8])%)(.*)$'
  if not name or NOT_LINUX[name] then return end
  local url = ('https://man7.org/linux/man-pages/man%s/%s.%s.html'):format(section, name, section)
  return { pandoc.Str(before), pandoc.Link(('%s(%s)'):format(name, section), url), pandoc.Str(after) }
end

local function link_names(inlines)
  local out, i = pandoc.List {}, 1
  while i <= #inlines do
    local el, following = inlines[i], (inlines[i + 2] or {}).text or ''
    local text = el.t == 'Str' and el.text or ''
    local number, rest = following:match '^(%d+)(.*)$'
    if number and text:match '^%(?RFC$' then
      local link = pandoc.Link('RFC ' .. number, 'https://www.rfc-editor.org/rfc/rfc' .. number)
      out:extend { pandoc.Str(text:sub(1, -4)), link, pandoc.Str(rest) }
      i = i + 2
    else
      out:extend(manual(text) or { el })
    end
    i = i + 1
  end
  return out
end

-- ---- code and its source ------------------------------------------------------------------------

local function line_of(quote, path) -- where the quote's first two lines are in the file
  local function bare(line) return line:match '^%s*(.-)%s*$' end
  local first, second = quote:match '^([^\n]*)\n?([^\n]*)'
  local alone = second == '' or second:match '%.%.%.' -- before a cut
  local number, before = 0, nil
  for line in (read(path) or ''):gmatch '([^\n]*)\n' do
    number = number + 1
    if before == bare(first) and (alone or bare(line) == bare(second)) then return number - 1 end
    before = bare(line)
  end
  return 1
end

local function quoted(el)
  local path = el.attributes.file
  el.attributes.file = nil
  if not paper then el.attributes.tabindex = '0' end -- the keyboard can scroll it
  if not path or path == 'sketch' then return el end
  local to = href(('%s#L%d'):format(path, line_of(el.text, path)), '.')
  local name = pandoc.Code(path)
  local caption = pandoc.Plain { to and not paper and pandoc.Link(name, to) or name }
  return pandoc.Div({ caption, el }, pandoc.Attr('', { 'quote' }))
end

-- ---- the whole page -----------------------------------------------------------------------------

local function cut(blocks) -- the part that the page is, or what is in no part
  local inside, whole = false, page == REST
  return blocks:filter(function(block)
    if block.t == 'Header' then
      inside = part_of[block.identifier] == page
      if inside and not whole then block.level = block.level - 1 end
    end
    return inside
  end)
end

local function add_contents(meta)
  local pages, here = {}, nil
  local list = pandoc.Div(pandoc.read(read(LIST), 'gfm').blocks:filter(
    function(block) return block.t == 'BulletList' end))
  meta.contents = pandoc.MetaBlocks { pandoc.walk_block(list, { Link = function(el)
    local path, anchor = el.target:match '^([^#]*)#?(.*)$'
    local to = page_of(from_top('common/book', path), anchor)
    el.target = href(el.target, 'common/book')
    table.insert(pages, { href = el.target, title = text_of(el.content) })
    if to == page then
      here = #pages
      el.attributes['aria-current'] = 'page'
    end
    return el
  end }) }
  if here then meta.previous, meta.next = pages[here - 1], pages[here + 1] end
end

local function write_index(title, blocks)
  local file, anchor, heading, words = assert(io.open(env 'INDEX', 'w')), '', title, pandoc.List {}
  local function section()
    local text = pandoc.write(pandoc.Pandoc(words), 'plain'):gsub('[%s%c]+', ' '):gsub('%-%-+', '')
    file:write(('[%q,%q,%q],\n'):format(page .. '.html' .. anchor, heading, text))
  end
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level > 1 then
      section()
      anchor, words = '#' .. block.identifier, pandoc.List {}
      heading = title .. ': ' .. text_of(block.content)
    else
      words:insert(block)
    end
  end
  section()
  file:close()
end

-- The glossary's entries are small headings right below the large one, and a stored table has none.
local function put_headings_in_order(blocks)
  if blocks[1].t ~= 'Header' then
    blocks:insert(1, pandoc.Header(1, 'Stored run: ' .. folder:match '[^/]*$'))
  end
  local second = blocks:filter(function(block) return block.t == 'Header' end)[2]
  local more = second and second.level - 2 or 0
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level > 1 then block.level = math.max(2, block.level - more) end
  end
end

local function heading(el)
  if mode == 'book' then
    el.identifier = id(page, el.level > 1 and el.identifier or '')
  elseif mode == 'site' and el.level > 1 then -- it leads to itself, to be copied
    local only = pandoc.walk_block(el, { Link = function(link) return link.content end })
    el.content = { pandoc.Link(only.content, '#' .. el.identifier) }
  end
  return el, false
end

local function link(el)
  local to = href(el.target, folder)
  if not to then return el.content, false end
  el.target = to
  return el, false
end

local function raw(el)
  if el.text:match '^<!%-%-' or el.text:match '^<source' and mode ~= 'site' then return {} end
  if mode == 'book' then
    el.text = el.text:gsub(' id="([^"]+)"', function(name) return ' id="' .. id(page, name) .. '"' end)
  end
  return el
end

-- A drawing has variables for its colours. Not every program that makes or reads a PDF or an EPUB knows
-- these, so that it becomes a picture in the colours of the day.
local function image(el)
  if not paper then return el, false end
  local path = from_top(folder, el.src):gsub('moving%.svg$', 'lanes.svg')
  el.src = env 'ROUGH' .. '/' .. path:gsub('%W', '-') .. '.png'
  local mine = el.src .. page:gsub('%W', '-') -- another page may be reading the same drawing
  local file = assert(io.open(mine, 'wb'))
  file:write(pandoc.pipe('rsvg-convert', { '-z', '2.5', path }, ''))
  file:close()
  assert(os.rename(mine, el.src))
  return el, false
end

-- A page of ours may have no style= in it: the alignment of columns becomes a class.
local function columns(el)
  local specs, classes = {}, {}
  for i, spec in ipairs(el.colspecs) do
    if spec[1] == 'AlignRight' then table.insert(classes, 'right-' .. i) end
    specs[i] = { 'AlignDefault' }
  end
  el.colspecs, el.attr = specs, pandoc.Attr('', classes)
  return pandoc.Div({ el }, pandoc.Attr('', { 'table' }, { tabindex = '0' }))
end

-- A drawing is not shrunk until nobody can read it: on a phone it scrolls, like a table.
local function drawing(el)
  local one = el.content[1]
  if mode ~= 'site' or not (#el.content == 1 and one.t == 'Image' or one.text == '<picture>') then return end
  return pandoc.Div({ el }, pandoc.Attr('', { 'drawing' }, { tabindex = '0' }))
end

local first = {
  traverse = 'topdown', -- what returns false as well is not looked into
  Header = heading,
  Link = link,
  Image = image,
  CodeBlock = quoted,
  RawBlock = raw,
  RawInline = raw,
  Inlines = link_names,
}

function Pandoc(doc)
  if source == CUT then doc.blocks = cut(doc.blocks) end
  if mode == 'site' then put_headings_in_order(doc.blocks) end
  doc.blocks = doc.blocks:walk(first):walk { Table = columns, Para = drawing }
  if mode == 'book' then return doc end
  local title = text_of(doc.blocks[1].content or {})
  doc.meta.pagetitle, doc.meta.root = title, root
  add_contents(doc.meta)
  if env 'INDEX' then write_index(title, doc.blocks) end
  return doc
end
