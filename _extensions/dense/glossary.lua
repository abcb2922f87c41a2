-- Before cross-references are resolved: gives each entry of the glossary an id, and links the first use of each
-- term in every numbered chapter to its entry, with the definition at the end of the page for the script to show.
-- The page that `glossary:` of _quarto.yml names is the one source. CONTRIBUTING.md says how an entry is written.

-- The class `hidden` is that of the titles which Quarto puts into each page for its menus.
local NO_PROSE =
  { "cell", "solution-inline", "content-visible", "content-hidden", "chapter-links", "provenance", "hidden" }
local CONTAINERS = { Emph = true, Strong = true, Quoted = true, Span = true, SmallCaps = true }

-- ---------- entries ----------

local function slug(name)
  return (name:lower():gsub("[^%w]+", "-"):gsub("^%-+", ""):gsub("%-+$", ""))
end

local function parts_of(list)
  local parts = pandoc.List({})
  for part in (list or ""):gmatch("[^,]+") do
    parts:insert((part:gsub("^%s+", ""):gsub("%s+$", "")))
  end
  return parts
end

-- "mini-batch (also minibatch; not a mini-batch of)": its name, its other forms, and what is not meant.
local function parse_term(text)
  local name, notes = text:match("^(.-)%s+%((.+)%)$")
  local entry = { name = name or text, others = pandoc.List({}), foreign = pandoc.List({}) }
  for note in (notes or ""):gmatch("[^;]+") do
    entry.others:extend(parts_of(note:match("^%s*also%s+(.+)$")))
    entry.foreign:extend(parts_of(note:match("^%s*not%s+(.+)$")))
  end
  entry.slug = slug(entry.name)
  return entry
end

local function each_entry(list, act)
  for _, item in ipairs(list.content) do
    act(parse_term(pandoc.utils.stringify(item[1])), item)
  end
end

local function is_glossary(div)
  return div.classes:includes("glossary")
end

local function name_entries(div)
  if not is_glossary(div) then
    return nil
  end
  return div:walk({
    DefinitionList = function(list)
      each_entry(list, function(entry, item)
        local shown = pandoc.Inlines({ pandoc.Span({ pandoc.Str(entry.name) }, { id = "term-" .. entry.slug }) })
        if #entry.others > 0 then
          local also = "(also " .. table.concat(entry.others, ", ") .. ")"
          shown:extend({ pandoc.Space(), pandoc.Span({ pandoc.Str(also) }, { class = "term-forms" }) })
        end
        item[1] = shown
      end)
      return list
    end,
  })
end

local function read_entries(path)
  local entries = pandoc.List({})
  local file = assert(io.open(path, "rb"), "the glossary " .. path .. " cannot be read")
  local source = pandoc.read(file:read("a"), "markdown")
  file:close()
  source:walk({
    Div = function(div)
      if is_glossary(div) then
        div:walk({
          DefinitionList = function(list)
            each_entry(list, function(entry, item)
              entry.definition = item[2][1]
              entries:insert(entry)
            end)
          end,
        })
      end
    end,
  })
  return entries
end

-- ---------- forms ----------

local function plural(word)
  if word:match("[sxz]$") or word:match("[cs]h$") then
    return word .. "es"
  end
  if word:match("[^aeiou]y$") then
    return word:sub(1, -2) .. "ies"
  end
  return word .. "s"
end

local function without_capital(word)
  return word:sub(1, 1):lower() .. word:sub(2)
end

-- First word -> the forms that begin with it, longest first.
local function index_forms(entries)
  local index = {}
  local function add(text, entry)
    local words = {}
    for word in text:gmatch("%S+") do
      table.insert(words, word)
    end
    index[words[1]] = index[words[1]] or {}
    table.insert(index[words[1]], { words = words, entry = entry })
  end
  for _, entry in ipairs(entries) do
    for _, form in ipairs({ entry.name, table.unpack(entry.others) }) do
      add(form, entry)
      add(plural(form), entry)
    end
    for _, phrase in ipairs(entry.foreign) do
      add(phrase, nil)
    end
  end
  for _, forms in pairs(index) do
    table.sort(forms, function(one, other)
      return #one.words > #other.words
    end)
  end
  return index
end

-- ---------- words ----------

local function is_letter(code)
  local ascii = (code >= 48 and code <= 57) or (code >= 65 and code <= 90) or (code >= 97 and code <= 122)
  return ascii or (code >= 0xC0 and code <= 0x3FF)
end

-- "(pre-activation," as {"(", "pre-activation", ","}; every second piece is a word.
local function split(text)
  local word, mark = text:match("^(%w+)([^%w\128-\255]*)$")
  if word then
    return { "", word, mark }
  end
  local pieces, piece, in_word = {}, "", false
  local codes = {}
  for _, code in utf8.codes(text) do
    table.insert(codes, code)
  end
  for place, code in ipairs(codes) do
    local letter = is_letter(code)
    local following = codes[place + 1]
    if code == 45 and in_word and following and is_letter(following) then
      letter = true
    end
    if letter ~= in_word then
      table.insert(pieces, piece)
      piece, in_word = "", letter
    end
    piece = piece .. utf8.char(code)
  end
  table.insert(pieces, piece)
  return pieces
end

local function tokens_of(inlines)
  local tokens = pandoc.List({})
  for place, inline in ipairs(inlines) do
    if inline.t == "Str" then
      for number, text in ipairs(split(inline.text)) do
        if text ~= "" then
          local own = text == inline.text and inline or pandoc.Str(text)
          tokens:insert({ kind = number % 2 == 0 and "word" or "mark", text = text, inline = own, place = place })
        end
      end
    elseif inline.t == "Space" or inline.t == "SoftBreak" then
      tokens:insert({ kind = "space", inline = inline })
    else
      tokens:insert({ kind = CONTAINERS[inline.t] and "container" or "other", inline = inline })
    end
  end
  return tokens
end

-- The number of tokens that a form takes from here; nil where it does not stand.
local function length_of(form, tokens, start)
  local at = start
  for number = 2, #form.words do
    local space, word = tokens[at + 1], tokens[at + 2]
    if not word or space.kind ~= "space" or word.kind ~= "word" or word.text ~= form.words[number] then
      return nil
    end
    at = at + 2
  end
  return at - start + 1
end

-- The entry of the longest form from here, nil where that is a phrase that means something else, and its length.
local function longest(index, tokens, start)
  local word = tokens[start].text
  local found, length
  for _, first in ipairs({ word, without_capital(word) }) do
    for _, form in ipairs(index[first] or {}) do
      local taken = length_of(form, tokens, start)
      if taken and (not length or taken > length) then
        found, length = form.entry, taken
      end
    end
  end
  return found, length
end

-- ---------- links ----------

local Linker = {}
Linker.__index = Linker

function Linker:link(entry, inlines)
  self.used[entry.slug] = true
  self.order:insert(entry)
  local attributes = { class = "glossary-term", ["aria-describedby"] = "definition-" .. entry.slug }
  return pandoc.Link(inlines, self.address .. "#term-" .. entry.slug, "", attributes)
end

-- What is not linked stays as it was, in one piece: later filters look for a whole `{#eq-name}`.
function Linker:inlines(inlines)
  local tokens = tokens_of(inlines)
  local result = pandoc.Inlines({})
  local open -- the place whose text the last inline of the result continues
  local at = 1
  while at <= #tokens do
    local token = tokens[at]
    local entry, length
    if token.kind == "word" then
      entry, length = longest(self.index, tokens, at)
    elseif token.kind == "container" then
      token.inline.content = self:inlines(token.inline.content)
    end
    local last = at + (length or 1) - 1
    if entry and not self.used[entry.slug] then
      local piece = pandoc.Inlines({})
      for each = at, last do
        piece:insert(tokens[each].inline)
      end
      result:insert(self:link(entry, piece))
      open = nil
    else
      for each = at, last do
        local own = tokens[each]
        if own.place and own.place == open then
          result[#result] = pandoc.Str(result[#result].text .. own.text)
        else
          result:insert(own.inline)
        end
        open = own.place
      end
    end
    at = last + 1
  end
  return result
end

local function holds_prose(div)
  for _, class in ipairs(NO_PROSE) do
    if div.classes:includes(class) then
      return false
    end
  end
  return true
end

-- Running text only: no headings, tables, figures, captions, code or formulas.
function Linker:blocks(blocks)
  for _, block in ipairs(blocks) do
    if block.t == "Para" or block.t == "Plain" then
      block.content = self:inlines(block.content)
    elseif block.t == "BlockQuote" or (block.t == "Div" and holds_prose(block)) then
      block.content = self:blocks(block.content)
    elseif block.t == "BulletList" or block.t == "OrderedList" then
      local items = pandoc.List({})
      for _, item in ipairs(block.content) do
        items:insert(self:blocks(item))
      end
      block.content = items
    elseif block.t == "DefinitionList" then
      local items = pandoc.List({})
      for _, item in ipairs(block.content) do
        local definitions = pandoc.List({})
        for _, definition in ipairs(item[2]) do
          definitions:insert(self:blocks(definition))
        end
        items:insert({ item[1], definitions })
      end
      block.content = items
    end
  end
  return blocks
end

function Linker:definitions()
  local blocks = pandoc.Blocks({})
  for _, entry in ipairs(self.order) do
    local attributes = { id = "definition-" .. entry.slug, ["data-term"] = entry.name }
    blocks:insert(pandoc.Div(entry.definition, attributes))
  end
  return pandoc.Div(blocks, { class = "glossary-definitions", hidden = "hidden" })
end

-- ---------- the page ----------

local function folder_of_page()
  return (quarto.doc.input_file:gsub("\\", "/"):match("^(.*)/") or ".")
end

-- Where the glossary is, for a link and on disk; nil for a page that is no numbered chapter.
local function glossary_of(meta)
  local crossref = meta.crossref or {}
  if not meta.glossary or not crossref["chapter-id"] or crossref["chapters-appendix"] then
    return nil
  end
  local address = pandoc.utils.stringify(meta.glossary)
  if meta["glossary-file"] then
    return address, pandoc.utils.stringify(meta["glossary-file"])
  end
  return address, folder_of_page() .. "/" .. address
end

local function link_terms(document)
  local address, file = glossary_of(document.meta)
  if not address then
    return nil
  end
  local linker = setmetatable({
    address = address,
    index = index_forms(read_entries(file)),
    used = {},
    order = pandoc.List({}),
  }, Linker)
  document.blocks = linker:blocks(document.blocks)
  if #linker.order > 0 then
    document.blocks:insert(linker:definitions())
  end
  return document
end

return { { Div = name_entries }, { Pandoc = link_terms } }
