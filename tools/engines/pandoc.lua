-- Does for pandoc what Quarto's own filters do: numbers, cross-references, callouts, tabs and conditional content.
-- The numbers come from the registry that the build tool hands over in the JSON file named by `dense-data`.

local data
local CALLOUTS = { "note", "tip", "warning", "important", "caution" }

local function html(text)
  return pandoc.RawBlock("html", text)
end

local function escape(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local function read_data(meta)
  local file = assert(io.open(pandoc.utils.stringify(meta["dense-data"]), "rb"))
  data = pandoc.json.decode(file:read("a"), false)
  file:close()
end

local function target(id)
  return data.targets[id]
end

-- ---------- conditional content ----------

local function matches(attributes, prefix)
  local profile, format = attributes[prefix .. "-profile"], attributes[prefix .. "-format"]
  if profile and profile ~= data.profile then
    return false
  end
  if format and format ~= "html" and format ~= "html:js" then
    return false
  end
  return profile ~= nil or format ~= nil
end

local function is_hidden(element)
  local visible = element.classes:includes("content-visible")
  if not visible and not element.classes:includes("content-hidden") then
    return false
  end
  local holds = matches(element.attributes, "when")
  local unless = element.attributes["unless-profile"] or element.attributes["unless-format"]
  if unless then
    holds = not matches(element.attributes, "unless")
  end
  return holds ~= visible
end

local function conditional(element)
  if is_hidden(element) then
    return {}
  end
  if element.classes:includes("content-visible") or element.classes:includes("content-hidden") then
    return element.content
  end
end

-- ---------- equations, figures, tables ----------

local function number_equations(inlines)
  local result = pandoc.Inlines({})
  local index = 1
  while index <= #inlines do
    local inline = inlines[index]
    local ahead = inlines[index + 1] and inlines[index + 1].t == "Space" and 2 or 1
    local label = inlines[index + ahead]
    local id = label and label.t == "Str" and label.text:match("^{#(eq%-[%w%-_]+)}$")
    if inline.t == "Math" and inline.mathtype == "DisplayMath" and id then
      inline.text = inline.text .. " \\qquad(" .. target(id).number .. ")"
      result:insert(pandoc.Span({ inline }, { id = id }))
      index = index + ahead + 1
    else
      result:insert(inline)
      index = index + 1
    end
  end
  return result
end

local function float_label(id)
  local found = target(id)
  return pandoc.Inlines({
    pandoc.Span({ pandoc.Str(found.label:gsub(" ", "\u{a0}") .. ":") }, { class = "float-label" }),
    pandoc.Space(),
  })
end

local function captioned(id, caption)
  local inlines = float_label(id)
  inlines:extend(caption)
  return pandoc.Plain(inlines)
end

local function open_float(kind, id)
  return html('<figure id="' .. escape(id) .. '" class="quarto-float-' .. kind .. '">')
end

local function figure_blocks(id, content, caption)
  local blocks = pandoc.Blocks({ open_float("fig", id), pandoc.Div(content, { class = "figure-scroll" }) })
  blocks:extend({ html("<figcaption>"), captioned(id, caption), html("</figcaption></figure>") })
  return blocks
end

local function table_blocks(id, content, caption)
  local blocks = pandoc.Blocks({ open_float("tbl", id), html("<figcaption>"), captioned(id, caption), html("</figcaption>") })
  blocks:extend(content)
  blocks:insert(html("</figure>"))
  return blocks
end

-- `::: {#fig-x}` or `::: {#tbl-x}`: the last paragraph is the caption.
local function float_div(div)
  local kind = div.identifier:match("^(fig)%-") or div.identifier:match("^(tbl)%-")
  if not kind or div.classes:includes("cell") then
    return nil
  end
  local caption = div.content:remove(#div.content)
  local make = kind == "fig" and figure_blocks or table_blocks
  return make(div.identifier, div.content, caption.content)
end

local function alternative(image)
  image.attributes["alt"] = image.attributes["fig-alt"] or image.attributes["alt"]
  image.attributes["fig-alt"] = nil
  return image
end

-- `![caption](file){#fig-x}` on its own.
local function figure(element)
  local image
  element.content:walk({
    Image = function(found)
      image = found
    end,
  })
  local id = element.identifier
  if image and id == "" then
    id = image.identifier
  end
  if not image or not id:match("^fig%-") then
    return nil
  end
  image.identifier = ""
  local caption = pandoc.utils.blocks_to_inlines(element.caption.long)
  return figure_blocks(id, { pandoc.Plain({ alternative(image) }) }, caption)
end

local function captioned_table(element)
  local id = element.identifier
  if not id:match("^tbl%-") then
    return nil
  end
  local caption = pandoc.utils.blocks_to_inlines(element.caption.long)
  element.identifier = ""
  element.caption = pandoc.Caption()
  return table_blocks(id, { element }, caption), false
end

-- ---------- callouts, tabs, exercises ----------

local function callout_kind(div)
  for _, kind in ipairs(CALLOUTS) do
    if div.classes:includes("callout-" .. kind) then
      return kind
    end
  end
end

local function take_heading(blocks)
  if blocks[1] and blocks[1].t == "Header" then
    return blocks:remove(1).content
  end
end

local function inlines_of(text)
  return pandoc.utils.blocks_to_inlines(pandoc.read(text, "markdown").blocks)
end

local function callout_title(div, kind)
  local name = kind:gsub("^%l", string.upper)
  local given = div.attributes["title"]
  local title = given and inlines_of(given) or take_heading(div.content)
  if not title then
    return pandoc.Inlines({ pandoc.Str(name) })
  end
  local result = pandoc.Inlines({ pandoc.Span({ pandoc.Str(name .. ": ") }, { class = "visually-hidden" }) })
  result:extend(title)
  return result
end

local function callout(div)
  local kind = callout_kind(div)
  if not kind then
    return nil
  end
  local title = callout_title(div, kind)
  local id = div.identifier ~= "" and (' id="' .. escape(div.identifier) .. '"') or ""
  local collapse = div.attributes["collapse"]
  local classes = div.classes:filter(function(name)
    return name ~= "callout-" .. kind
  end)
  classes:insert(1, "callout callout-" .. kind)
  local attributes = id .. ' class="' .. escape(table.concat(classes, " ")) .. '"'
  local before, between, after
  if collapse then
    local open = collapse == "false" and " open" or ""
    before = "<details" .. attributes .. open .. '><summary class="callout-header">'
    between, after = '</summary><div class="callout-body">', "</div></details>"
  else
    before = "<div" .. attributes .. ' role="note"><p class="callout-header">'
    between, after = '</p><div class="callout-body">', "</div></div>"
  end
  local blocks = pandoc.Blocks({ html(before), pandoc.Plain(title), html(between) })
  blocks:extend(div.content)
  blocks:insert(html(after))
  return blocks
end

local function tabset(div)
  if not div.classes:includes("panel-tabset") then
    return nil
  end
  local level
  local panes, pane = pandoc.Blocks({}), nil
  for _, block in ipairs(div.content) do
    if block.t == "Header" and (not level or block.level == level) then
      level = block.level
      pane = pandoc.Div({ pandoc.Div({ pandoc.Plain(block.content) }, { class = "tab-title" }) }, { class = "tab-pane" })
      panes:insert(pane)
    elseif pane then
      pane.content:insert(block)
    end
  end
  return pandoc.Div(panes, { class = "panel-tabset" })
end

local function statement(div, class, title_class, title)
  local head = pandoc.Span(title, { class = title_class })
  local first = div.content[1]
  if first and first.t == "Para" then
    first.content:insert(1, pandoc.Space())
    first.content:insert(1, head)
  else
    div.content:insert(1, pandoc.Para({ head }))
  end
  div.classes:extend(class)
  return div
end

local function exercise(div)
  if not div.identifier:match("^exr%-") then
    return nil
  end
  local title = pandoc.Inlines({ pandoc.Str(target(div.identifier).label) })
  local name = take_heading(div.content)
  if name then
    title:extend({ pandoc.Space(), pandoc.Str("(") })
    title:extend(name)
    title:insert(pandoc.Str(")"))
  end
  return statement(div, { "theorem", "exercise" }, "theorem-title", { pandoc.Strong(title) })
end

local function solution(div)
  if not div.identifier:match("^sol%-") then
    return nil
  end
  take_heading(div.content)
  local label = target(div.identifier).label
  return statement(div, { "proof", "solution" }, "proof-title", { pandoc.Emph(label), pandoc.Str(". ") })
end

-- ---------- cross-references ----------

local function cross_reference(citation)
  local found = target(citation.id)
  if not found then
    return nil
  end
  local text = citation.mode == "SuppressAuthor" and found.number or found.label
  local content = pandoc.Inlines(citation.prefix)
  if #content > 0 then
    content:extend({ pandoc.Space(), pandoc.Str(found.number) })
  else
    content:insert(pandoc.Str((text:gsub(" ", "\u{a0}", 1))))
  end
  return pandoc.Link(content, found.href, found.title or "", { class = "quarto-xref" })
end

local function resolve(cite)
  local inlines = pandoc.Inlines({})
  for index, citation in ipairs(cite.citations) do
    local link = cross_reference(citation)
    if not link then
      return nil
    end
    if index > 1 then
      inlines:extend({ pandoc.Str(","), pandoc.Space() })
    end
    inlines:insert(link)
    inlines:extend(citation.suffix)
  end
  return inlines
end

local function drop_empty_link(div)
  if not div.classes:includes("statement-link") then
    return nil
  end
  local known = true
  div:walk({
    Cite = function(cite)
      known = known and target(cite.citations[1].id) ~= nil
    end,
  })
  if not known then
    return {}
  end
end

-- ---------- headings and links ----------

local counters = { 0, 0, 0, 0, 0, 0 }

local function section_number(header)
  local level = header.level
  counters[level] = counters[level] + 1
  for deeper = level + 1, #counters do
    counters[deeper] = 0
  end
  local parts = { data.number }
  for each = 2, level do
    table.insert(parts, tostring(counters[each]))
  end
  return table.concat(parts, ".")
end

local function heading(header)
  if header.level == 1 or not data.number or header.classes:includes("unnumbered") then
    return nil
  end
  local number = section_number(header)
  header.attributes["data-number"] = number
  header.content:insert(1, pandoc.Space())
  header.content:insert(1, pandoc.Span({ pandoc.Str(number) }, { class = "header-section-number" }))
  return header
end

-- The template shows the title, so that the body starts with the first paragraph.
local function lift_title(document)
  for index, block in ipairs(document.blocks) do
    if block.t == "Header" and block.level == 1 then
      document.meta.title = pandoc.MetaInlines(block.content)
      document.meta["title-id"] = block.identifier
      document.blocks:remove(index)
      break
    end
  end
  return document
end

local function page_link(link)
  local path, anchor = link.target:match("^([^#:]+)%.qmd(#?.*)$")
  if path then
    link.target = path .. ".html" .. anchor
    return link
  end
end

return {
  { Meta = read_data },
  { Div = conditional, Span = conditional },
  { Inlines = number_equations },
  { Div = drop_empty_link },
  { traverse = "topdown", Table = captioned_table },
  { Div = float_div, Figure = figure },
  { Image = alternative },
  { Div = exercise },
  { Div = solution },
  { Div = callout },
  { Div = tabset },
  { Cite = resolve, Link = page_link },
  { traverse = "topdown", Header = heading },
  { Pandoc = lift_title },
}
