# Tables as Parley writes and reads them.

# Columns that hold names: they are never numbers, and "NA" may be a name.
name_columns <- c("id", "site", "view", "feature", "class", "reference", "unit", "sample", "group")

# What a missing cell may hold, in any case (docs/reference/data.md).
is_missing <- function(x) tolower(x) %in% c("", "na", "nan", "null")

# Everything is read as text first, so that "007" stays "007"; then columns that
# hold nothing but numbers become numbers.
read_table <- function(path) {
  table <- read.table(path,
    header = TRUE, sep = ",", quote = "\"", colClasses = "character", na.strings = character(),
    check.names = FALSE, comment.char = "", strip.white = TRUE, encoding = "UTF-8", fill = FALSE,
    stringsAsFactors = FALSE
  )
  first <- charToRaw(names(table)[1])
  if (identical(first[1:3], as.raw(c(0xef, 0xbb, 0xbf)))) names(table)[1] <- rawToChar(first[-(1:3)]) # byte order mark
  for (column in setdiff(names(table), name_columns)) {
    text <- table[[column]]
    text[is_missing(text)] <- NA
    number <- grepl("^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$", text)
    table[[column]] <- if (all(number | is.na(text))) as.numeric(text) else text
  }
  table
}

# The shortest text that reads back as the same number.
number_text <- function(x) {
  short <- format_each(x, 15)
  ifelse(is.na(x) | as.numeric(short) == x, short, format_each(x, 17))
}

format_each <- function(x, digits) vapply(x, format, "", digits = digits, trim = TRUE, USE.NAMES = FALSE)

fail <- function(..., hint = NULL) {
  stop(..., if (!is.null(hint)) paste0("\n  hint: ", hint), call. = FALSE)
}

check_ids <- function(table, what) {
  if (!"id" %in% names(table)) fail(what, " has no column 'id'")
  if (!is.character(table$id)) {
    fail("the ids of ", what, " are not text, and may have lost leading zeros",
      hint = "read them with colClasses = c(id = \"character\")")
  }
  twice <- duplicated(table[intersect(c("site", "id"), names(table))])
  if (any(twice)) fail(what, " has more than one row for ", table$id[twice][1])
}
