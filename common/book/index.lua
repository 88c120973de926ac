-- The last chapter of the PDF, the tables of ideas, becomes an index: each idea once, in the order of
-- the alphabet, with a link to each place. The style sheet turns these links into page numbers.

local function entry(row)
  local places, seen = pandoc.List {}, {}
  for i = 2, #row do
    pandoc.walk_block(pandoc.Div(row[i]), { Link = function(link)
      if link.target:match '^#' and not seen[link.target] then
        seen[link.target] = true
        places:extend { pandoc.Str(#places == 0 and '\u{2002}' or ', '), pandoc.Link({}, link.target, '', { class = 'page' }) }
      end
    end })
  end
  local idea = pandoc.walk_block(pandoc.Plain(pandoc.utils.blocks_to_inlines(row[1])), {
    Link = function(link) return link.content end,
  })
  return #places > 0 and pandoc.Plain(idea.content .. places)
end

function Pandoc(doc)
  local entries, inside = pandoc.List {}, false
  local kept = doc.blocks:filter(function(block)
    if block.t == 'Header' and block.level == 1 then inside = block.identifier == 'p-common-ideas' end
    if inside then
      pandoc.walk_block(pandoc.Div { block }, { Table = function(each)
        for _, row in ipairs(pandoc.utils.to_simple_table(each).rows) do
          entries:insert(entry(row) or nil)
        end
      end })
    end
    return not inside or block.t == 'Header' and block.level == 1
  end)
  local function key(block) return pandoc.utils.stringify(block):lower():gsub('^%W+', '') end
  entries:sort(function(a, b) return key(a) < key(b) end)
  kept:insert(pandoc.Div({ pandoc.BulletList(entries:map(function(each) return { each } end)) },
    pandoc.Attr('', { 'index' })))
  return pandoc.Pandoc(kept, doc.meta)
end
