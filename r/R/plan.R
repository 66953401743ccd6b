# Plans from data frames.

parley_write_plan <- function(path, name, sites, views, method, privacy, ranges = NULL, ...) {
  if (file.exists(path)) fail(path, " exists already, and was left as it is")
  text <- parley_plan_text(name, sites, views, method, privacy, ranges, ...)
  writeBin(charToRaw(enc2utf8(text)), path)
  invisible(path)
}

parley_plan_text <- function(name, sites, views, method, privacy, ranges = NULL, ...) {
  more <- list(...)
  private <- identical(privacy$protection, "differential")
  features <- lapply(views, plan_features, ranges = ranges, private = private)
  unknown <- setdiff(names(ranges), unlist(lapply(features, vapply, function(f) if (is.list(f)) f$name else f, "")))
  if (length(unknown) > 0) fail("there is no feature '", unknown[1], "', whose range was given")

  folders <- sites
  if (!is.null(names(sites))) {
    if (!is.null(more$local)) fail("give the data either by sites or by local")
    more$local <- list(sites = as.list(gsub("\\", "/", folders, fixed = TRUE)))
    names(more$local$sites) <- names(sites)
    sites <- names(sites)
  }
  first <- intersect(c("question", "seed"), names(more))
  middle <- setdiff(names(more), c(first, "local"))
  if ("subjects" %in% middle) more$subjects <- as.list(more$subjects)
  plan <- c(
    list(parley = 1, name = name), more[first], list(sites = as.list(unname(sites))),
    list(views = unname(Map(function(n, f) list(name = n, features = f), names(views), features))),
    more[middle], list(method = method, privacy = privacy), more["local"[!is.null(more$local)]]
  )
  paste0(paste(yaml_block(plan), collapse = "\n"), "\n")
}

plan_features <- function(view, ranges, private) {
  if (is.data.frame(view)) {
    columns <- setdiff(names(view), "id")
    described <- lapply(columns, function(c) plan_feature(c, view[[c]], private))
  } else {
    described <- lapply(view, function(f) if (is.list(f)) f else list(name = f))
  }
  if (length(described) == 0) fail("a view has no features")
  lapply(described, function(feature) {
    range <- ranges[[feature$name]]
    if (!is.null(range)) feature$range <- as.list(as.numeric(range))
    if (length(feature) > 1) feature else feature$name
  })
}

plan_feature <- function(name, column, private) {
  if (is.factor(column)) {
    levels <- levels(column)
  } else if (is.logical(column)) {
    levels <- c("FALSE", "TRUE")
  } else if (is.numeric(column) && is.null(attr(column, "class"))) {
    return(list(name = name))
  } else if (!is.character(column)) {
    fail("'", name, "' has class ", class(column)[1], ", and is neither number nor category")
  } else if (private) {
    fail("'", name, "' is text, and its levels would be taken from the data that are to be protected",
      hint = "declare them: factor(column, levels = c(...))")
  } else {
    levels <- sort(unique(column[!is.na(column)]), method = "radix")
  }
  list(name = name, kind = "category", levels = as.list(levels))
}

yaml_scalar <- function(x) {
  if (is.na(x)) fail("a plan holds no missing values")
  if (is.logical(x)) return(tolower(as.character(x)))
  if (is.numeric(x)) return(number_text(x))
  x <- as.character(x)
  # Plain words that YAML may read as something other than text.
  words <- c("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf")
  if (grepl("^[A-Za-z_][A-Za-z0-9_-]*$", x) && !tolower(x) %in% words) return(x)
  x <- gsub("([\"\\\\])", "\\\\\\1", x)
  paste0("\"", gsub("\n", "\\n", gsub("\t", "\\t", x, fixed = TRUE), fixed = TRUE), "\"")
}

is_mapping <- function(x) is.list(x) && !is.null(names(x))

# A vector of one is a scalar; list(x) is a list of one.
yaml_flow <- function(x) {
  if (is_mapping(x)) {
    paste0("{", paste0(vapply(names(x), yaml_scalar, ""), ": ", vapply(x, yaml_flow, ""), collapse = ", "), "}")
  } else if (is.list(x) || length(x) != 1) {
    paste0("[", paste(vapply(x, yaml_flow, ""), collapse = ", "), "]")
  } else {
    yaml_scalar(x)
  }
}

yaml_block <- function(mapping, indent = "") {
  lines <- character()
  for (key in names(mapping)) {
    value <- mapping[[key]]
    head <- paste0(indent, yaml_scalar(key), ":")
    if (is_mapping(value)) {
      lines <- c(lines, head, yaml_block(value, paste0(indent, "  ")))
    } else if (is.list(value) && any(vapply(value, is_mapping, NA))) {
      items <- lapply(value, function(item) {
        if (!is_mapping(item) || !any(vapply(item, is.list, NA))) return(paste0(indent, "  - ", yaml_flow(item)))
        block <- yaml_block(item, paste0(indent, "    "))
        c(paste0(indent, "  - ", trimws(block[1], "left")), block[-1])
      })
      lines <- c(lines, head, unlist(items))
    } else {
      lines <- c(lines, paste(head, yaml_flow(value)))
    }
  }
  lines
}
