# Running studies with the program parley.

parley_run <- function(plan, out, program = NULL) {
  if (is.null(program)) program <- Sys.getenv("PARLEY", "parley")
  if (!nzchar(Sys.which(program))) {
    parley_error(paste0(
      "there is no program '", program, "'\n",
      "  hint: put parley on PATH, set the variable PARLEY, or give program ="
    ), 127L)
  }
  answer <- tempfile("parley")
  said <- tempfile("parley")
  on.exit(unlink(c(answer, said)))
  arguments <- c("run", shQuote(path.expand(plan)), "--out", shQuote(path.expand(out)), "--json")
  code <- suppressWarnings(system2(program, arguments, stdout = answer, stderr = said))
  if (code != 0) {
    lines <- paste(readLines(said, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
    parley_error(trimws(sub("(?s)^.*parley: error: ", "", lines, perl = TRUE)), code)
  }
  parley_results(jsonlite::fromJSON(answer, simplifyVector = FALSE)$results)
}

parley_error <- function(message, code) {
  stop(structure(
    class = c("parley_error", "error", "condition"),
    list(message = message, call = NULL, code = code)
  ))
}
