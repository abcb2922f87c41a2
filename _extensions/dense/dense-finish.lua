-- After cross-references are resolved: lays out equations, exercises, hints and wide tables, in HTML only.

if not FORMAT:match("html") then
  return {}
end

local KINDS = { number = "Number", code = "Code", explain = "Explanation" }

local function html(text)
  return pandoc.RawBlock("html", text)
end

-- The number that the engine wrote behind the formula: `... \qquad(1.2)`.
local function take_number(math)
  local body, number = math.text:match("^(.-)%s*\\qquad%((%w+%.%w+)%)%s*$")
  if number then
    return pandoc.Math("DisplayMath", body), number
  end
  return math, nil
end

local function equation(inline)
  local id, math = "", inline
  if inline.t == "Span" then
    id, math = inline.identifier, inline.content[1]
  end
  local body, number = take_number(math)
  local blocks = { pandoc.Div({ pandoc.Plain({ body }) }, { class = "equation-body" }) }
  if number then
    local link = pandoc.Link("(" .. number .. ")", "#" .. id, "", { class = "equation-number" })
    link.attributes["aria-label"] = "Equation " .. number
    table.insert(blocks, pandoc.Plain({ link }))
  end
  return pandoc.Div(blocks, pandoc.Attr(id, number and { "equation" } or { "equation", "unnumbered" }))
end

local function is_display(inline)
  if inline.t == "Math" then
    return inline.mathtype == "DisplayMath"
  end
  return inline.t == "Span" and #inline.content == 1 and is_display(inline.content[1])
end

local function trimmed(inlines)
  while #inlines > 0 and (inlines[1].t == "Space" or inlines[1].t == "SoftBreak") do
    inlines:remove(1)
  end
  while #inlines > 0 and (inlines[#inlines].t == "Space" or inlines[#inlines].t == "SoftBreak") do
    inlines:remove(#inlines)
  end
  return inlines
end

local function split_display(para)
  if not para.content:find_if(is_display) then
    return nil
  end
  local blocks, text = pandoc.Blocks({}), pandoc.Inlines({})
  local function flush()
    text = trimmed(text)
    if #text > 0 then
      blocks:insert(pandoc.Para(text))
    end
    text = pandoc.Inlines({})
  end
  for _, inline in ipairs(para.content) do
    if is_display(inline) then
      flush()
      blocks:insert(equation(inline))
    else
      text:insert(inline)
    end
  end
  flush()
  return blocks
end

local function has_title(inline)
  return inline.t == "Span" and (inline.classes:includes("theorem-title") or inline.classes:includes("proof-title"))
end

-- Quarto ends "Solution A.1." so, because its text runs on; here it stands alone.
local function without_full_stop(title)
  local last = title.content[#title.content]
  if last and last.t == "Str" and last.text:match("^%.%s*$") then
    title.content:remove(#title.content)
  end
  return title
end

-- "Exercise 1.2 (Count)" in a line of its own, with a badge for its kind.
local function statement(div)
  local first = div.content[1]
  if not first or (first.t ~= "Para" and first.t ~= "Plain") or not first.content[1] or not has_title(first.content[1]) then
    return nil
  end
  local head = pandoc.Inlines({ without_full_stop(first.content:remove(1)) })
  local kind = div.attributes["kind"]
  if kind then
    head:insert(pandoc.Space())
    head:insert(pandoc.Span({ pandoc.Str(KINDS[kind] or kind) }, { class = "kind kind-" .. kind }))
    div.attributes["kind"] = nil
    div.attributes["data-kind"] = kind
  end
  local answered = div.content[#div.content]
  if div.classes:includes("solution") and answered.t == "Div" and answered.classes:includes("statement-link") then
    head:insert(pandoc.Space())
    head:insert(pandoc.Span(answered.content[1].content, { class = "statement-link" }))
    div.content:remove(#div.content)
  end
  first.content = trimmed(first.content)
  if #first.content == 0 then
    div.content:remove(1)
  end
  div.content:insert(1, pandoc.Div({ pandoc.Plain(head) }, { class = "statement-head" }))
  return div
end

local function disclosure(div)
  local blocks = pandoc.Blocks({ html('<details class="hint"><summary>Hint</summary>') })
  blocks:extend(div.content)
  blocks:insert(html("</details>"))
  return blocks
end

local LINE = 88

local function has_long_line(text)
  for line in text:gmatch("[^\n]+") do
    if pandoc.text.len(line) > LINE then
      return true
    end
  end
  return false
end

-- Quarto takes a result in plain text for a display like a figure, and says of no output that its lines are long.
local function output(div)
  local block = div.content[1]
  if #div.content ~= 1 or block.t ~= "CodeBlock" then
    return nil
  end
  local classes = div.classes
  local streams = classes:includes("cell-output-stdout") or classes:includes("cell-output-stderr")
  if classes:includes("cell-output-display") then
    classes:insert("cell-output-text")
  elseif streams and not classes:includes("cell-output-long") and has_long_line(block.text) then
    classes:insert("cell-output-long")
  end
  return div
end

local function finish_div(div)
  if div.classes:includes("hint") then
    return disclosure(div)
  end
  if div.classes:includes("cell-output") then
    return output(div)
  end
  if div.classes:includes("exercise") or div.classes:includes("solution") then
    return statement(div)
  end
end

-- ---------- long formulas in a line of text ----------

local LONG = 24
local OPERATORS = {}
for name in
  ("= + - < > : \\cdot \\times \\odot \\le \\leq \\ge \\geq \\ne \\neq \\approx \\to \\mapsto \\in"):gmatch("%S+")
do
  OPERATORS[name] = true
end
local OPENING = { ["{"] = true, ["("] = true, ["["] = true, ["\\left"] = true, ["\\begin"] = true, ["\\lVert"] = true }
local CLOSING = { ["}"] = true, [")"] = true, ["]"] = true, ["\\right"] = true, ["\\end"] = true, ["\\rVert"] = true }

local function tokens(tex)
  local position = 1
  return function()
    if position > #tex then
      return nil
    end
    local token = tex:match("^\\%a+", position) or tex:match("^\\.", position) or tex:match("^%s+", position)
    token = token or tex:sub(position, position)
    position = position + #token
    return token
  end
end

-- "a + b = c" as {"a +", "b =", "c"}: TeX, too, breaks a line behind an operator outside all brackets.
local function pieces(tex)
  local result, piece, depth, before = {}, "", 0, nil
  for token in tokens(tex) do
    local is_space = token:match("^%s+$")
    if OPENING[token] then
      depth = depth + 1
    elseif CLOSING[token] then
      depth = depth - 1
    end
    piece = piece .. token
    local binary = OPERATORS[token] and before and not OPERATORS[before] and before ~= "^" and before ~= "_"
    if depth == 0 and binary then
      table.insert(result, piece)
      piece = ""
    end
    if not is_space then
      before = token
    end
  end
  table.insert(result, piece)
  return result
end

local function drawn_length(tex)
  return #tex:gsub("\\%a+", "x"):gsub("[%s{}^_]", "")
end

-- A browser keeps a formula in one line; a long one is cut so that a phone can break it.
local function breakable(math)
  if math.mathtype ~= "InlineMath" or drawn_length(math.text) < LONG then
    return nil
  end
  local inlines = pandoc.Inlines({})
  for index, piece in ipairs(pieces(math.text)) do
    if index > 1 then
      inlines:insert(pandoc.RawInline("html", "<wbr>"))
    end
    inlines:insert(pandoc.Math("InlineMath", piece))
  end
  return inlines
end

-- A formula and the punctuation that touches it stay in one line.
local function keep_together(inlines)
  local result = pandoc.Inlines({})
  local index = 1
  while index <= #inlines do
    local inline, after = inlines[index], inlines[index + 1]
    local mark = after and after.t == "Str" and after.text:match("^[%.,;:!%?%)%]]+")
    if inline.t == "Math" and inline.mathtype == "InlineMath" and mark then
      result:insert(pandoc.Span({ inline, pandoc.Str(mark) }, { class = "keep" }))
      after.text = after.text:sub(#mark + 1)
      if after.text == "" then
        index = index + 1
      end
    else
      result:insert(inline)
    end
    index = index + 1
  end
  return result
end

local function scrolling(element)
  return { html('<div class="table-scroll">'), element, html("</div>") }
end

return {
  { Math = breakable },
  { Inlines = keep_together },
  { Para = split_display, Plain = split_display },
  { Div = finish_div, Table = scrolling },
}
