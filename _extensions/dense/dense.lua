-- Before cross-references are resolved: ties each exercise to its solution, and hands Quarto our style and script.

local function reference(id)
  return pandoc.Cite({ pandoc.Str("@" .. id) }, { pandoc.Citation(id, "AuthorInText") })
end

local function link_paragraph(before, id)
  return pandoc.Div({ pandoc.Para({ pandoc.Str(before), pandoc.Space(), reference(id) }) }, { class = "statement-link" })
end

local function tie(div)
  local name = div.identifier:match("^exr%-(.+)$")
  if name then
    div.content:insert(link_paragraph("Solved in", "sol-" .. name))
    return div
  end
  name = div.identifier:match("^sol%-(.+)$")
  if not name then
    return nil
  end
  if div.classes:includes("cell") then
    -- A cell's label is no statement, whatever it starts with.
    div.identifier = "cell-" .. div.identifier
  else
    div.content:insert(link_paragraph("Answers", "exr-" .. name))
  end
  return div
end

local FONTS = {
  "stix-two-math",
  "stix-two-text-latin-normal",
  "stix-two-text-latin-italic",
  "stix-two-text-latin-ext-normal",
  "stix-two-text-latin-ext-italic",
  "stix-two-text-greek-normal",
  "stix-two-text-greek-italic",
}

local function add_files(meta)
  if not (quarto and quarto.doc.is_format("html:js")) then
    return nil
  end
  local resources = {}
  for _, font in ipairs(FONTS) do
    local path = "fonts/" .. font .. ".woff2"
    table.insert(resources, { name = path, path = path })
  end
  quarto.doc.add_html_dependency({
    name = "dense",
    version = "0.1.0",
    stylesheets = { "dense.css" },
    scripts = { "dense.js" },
    resources = resources,
  })
  return meta
end

return { { Meta = add_files, Div = tie } }
