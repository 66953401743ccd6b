# Data folders from data frames.

parley_write_data <- function(folder, subjects, views) {
  if (file.exists(folder)) fail(folder, " exists already, and was left as it is")
  for (name in names(views)) {
    if (!grepl("^[A-Za-z0-9_-]+$", name)) fail("'", name, "' cannot be the name of a view", hint = "letters, digits, - and _")
  }
  frames <- c(list(subjects), unname(views))
  files <- c("subjects.csv", sprintf("view_%s.csv", names(views)))
  what <- c("subjects", sprintf("view %s", names(views)))
  texts <- Map(data_text, frames, what)
  dir.create(dirname(folder), recursive = TRUE, showWarnings = FALSE)
  part <- tempfile(paste0(".", basename(folder), "."), dirname(folder))
  dir.create(part)
  on.exit(unlink(part, recursive = TRUE))
  for (i in seq_along(files)) writeBin(charToRaw(texts[[i]]), file.path(part, files[i]))
  if (!file.rename(part, folder)) fail("cannot make ", folder)
  invisible(folder)
}

data_text <- function(frame, what) {
  check_ids(frame, what)
  columns <- c("id", setdiff(names(frame), "id"))
  cells <- lapply(columns, function(name) data_cells(name, frame[[name]], what))
  lines <- c(paste(quote_cells(columns), collapse = ","), do.call(paste, c(cells, sep = ",")))
  enc2utf8(paste0(paste(lines, collapse = "\n"), "\n"))
}

data_cells <- function(name, column, what) {
  text <- if (inherits(column, "POSIXt")) {
    whole <- all(format(column, "%H:%M:%S") == "00:00:00", na.rm = TRUE)
    format(column, if (whole) "%Y-%m-%d" else "%Y-%m-%dT%H:%M:%S")
  } else if (inherits(column, "Date")) {
    format(column, "%Y-%m-%d")
  } else if (is.factor(column) || is.character(column)) {
    quote_cells(as.character(column))
  } else if (is.logical(column)) {
    as.character(column)
  } else if (is.numeric(column) && is.null(attr(column, "class"))) {
    if (any(is.infinite(column))) fail(what, ": '", name, "' holds an infinite number")
    text <- rep("", length(column))
    text[!is.na(column)] <- number_text(column[!is.na(column)])
    text
  } else {
    fail(what, ": '", name, "' has class ", class(column)[1], ", and is neither number nor text")
  }
  ifelse(is.na(column), "", text)
}

quote_cells <- function(x) {
  needed <- grepl("[,\"\r\n]|^ | $", x)
  ifelse(needed, paste0("\"", gsub("\"", "\"\"", x, fixed = TRUE), "\""), x)
}
