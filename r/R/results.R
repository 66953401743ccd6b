# A results directory as data frames.

parley_results <- function(path) {
  at <- function(name) file.path(path, name)
  if (!file.exists(at("metrics.json"))) {
    fail(path, " has no metrics.json", hint = if (file.exists(at("plan.yaml"))) {
      "this study has not ended: run the same command again"
    } else {
      "give the directory that 'parley run' printed"
    })
  }
  table <- function(name) if (file.exists(at(name))) read_table(at(name))
  json <- function(name) if (file.exists(at(name))) jsonlite::fromJSON(at(name), simplifyVector = FALSE)

  metrics <- json("metrics.json")
  verdicts <- as.character(unlist(metrics$verdicts))
  metrics$verdicts <- NULL
  structure(list(
    path = path,
    metrics = unlist(metrics),
    verdicts = verdicts,
    sites = list.files(at("sites")),
    rounds = read_rounds(at("rounds.jsonl")),
    privacy = json("privacy.json"),
    loadings = table("model/loadings.csv"),
    variance_explained = variance_explained(json("model/model.json")),
    site_means = table("model/site-means.csv"),
    coefficients = table("model/coefficients.csv")
  ), class = "parley_results")
}

print.parley_results <- function(x, ...) {
  cat("Results of a Parley study in ", x$path, "\n", sep = "")
  for (name in setdiff(names(x), c("path", "metrics", "verdicts"))) {
    if (length(x[[name]]) == 0) next
    size <- if (is.data.frame(x[[name]])) paste(nrow(x[[name]]), "rows") else paste(length(x[[name]]), "entries")
    cat(sprintf("  $%-20s %s\n", name, size))
  }
  print(x$metrics)
  for (verdict in x$verdicts) cat("! ", verdict, "\n", sep = "")
  invisible(x)
}

read_rounds <- function(path) {
  if (!file.exists(path)) return(NULL) # a site's own folder
  rows <- lapply(readLines(path, encoding = "UTF-8"), function(line) {
    round <- jsonlite::fromJSON(line, simplifyVector = FALSE)
    do.call(rbind, lapply(round$sites, function(s) {
      data.frame(
        round = round$round, site = s$site, kind = s$kind, bytes_down = s$bytes_down, bytes_up = s$bytes_up,
        release_sha256 = or_na(s$release_sha256), left = or_na(s$left), stringsAsFactors = FALSE
      )
    }))
  })
  do.call(rbind, rows)
}

or_na <- function(x) if (is.null(x)) NA_character_ else x

variance_explained <- function(model) {
  of_view <- function(view) {
    if (!"r2_by_factor" %in% names(view)) return(NULL)
    shares <- lapply(c(list(view$r2), view$r2_by_factor), function(x) if (is.null(x)) NA_real_ else as.numeric(x))
    data.frame(view = view$name, factor = seq_along(shares) - 1, r2 = unlist(shares), stringsAsFactors = FALSE)
  }
  do.call(rbind, lapply(model$views, of_view))
}

parley_scores <- function(results, site = NULL) {
  found <- lapply(if (is.null(site)) results$sites else site, function(name) {
    path <- file.path(results$path, "sites", name, "scores.csv")
    if (file.exists(path)) cbind(site = name, read_table(path), stringsAsFactors = FALSE)
  })
  found <- do.call(rbind, found)
  if (is.null(found)) fail(results$path, " has scores of ", if (is.null(site)) "no site" else paste("no site", site))
  found
}

parley_table <- function(results, name, kind = c("tables", "figures"), site = NULL) {
  kind <- match.arg(kind)
  folder <- if (is.null(site)) file.path(results$path, kind) else file.path(results$path, "sites", site, kind)
  path <- file.path(folder, paste0(name, ".csv"))
  if (!file.exists(path)) {
    there <- sub("[.]csv$", "", list.files(folder, "[.]csv$"))
    fail(path, " does not exist", hint = paste("there are:", paste(there, collapse = ", ")))
  }
  read_table(path)
}

parley_join <- function(scores, subjects) {
  if (inherits(scores, "parley_results")) scores <- parley_scores(scores)
  if (is.character(subjects)) subjects <- read_table(subjects)
  check_ids(subjects, "subjects")
  check_ids(scores, "scores")
  key <- if ("site" %in% names(scores) && "site" %in% names(subjects)) c("site", "id") else "id"
  if (identical(key, "id") && anyDuplicated(scores$id)) {
    fail("subjects of different sites have the same id",
      hint = "give subjects a column 'site', or join each site by itself")
  }
  added <- setdiff(names(subjects), key)
  both <- intersect(added, names(scores))
  if (length(both) > 0) {
    fail("scores and subjects both have a column '", both[1], "'", hint = "rename that of subjects")
  }
  name <- function(table) do.call(paste, c(unname(as.list(table[key])), sep = "\r"))
  row <- match(name(scores), name(subjects))
  if (nrow(scores) > 0 && all(is.na(row))) fail("no id of the scores is among the subjects")
  known <- subjects[row, added, drop = FALSE]
  rownames(known) <- NULL
  cbind(scores, known)
}
