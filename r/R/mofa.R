# Import and export of the tables of MOFA2.

parley_from_mofa <- function(table, folder) {
  if (is.character(table)) table <- read_table(table)
  lacking <- setdiff(c("sample", "feature", "view", "value"), names(table))
  if (length(lacking) > 0) {
    fail("the table has no column '", lacking[1], "': MOFA2's have sample, feature, view, group, value")
  }
  if (!"group" %in% names(table)) table$group <- "group1"
  if (is.factor(table$sample)) table$sample <- as.character(table$sample)
  if (!is.character(table$sample)) {
    fail("the ids of the samples are not text, and may have lost leading zeros",
      hint = "read them with colClasses = c(sample = \"character\")")
  }
  for (column in c("feature", "view", "group")) table[[column]] <- as.character(table[[column]])
  table <- table[!is.na(table$value), ]

  pairs <- unique(table[c("view", "feature")])
  several <- table$feature %in% pairs$feature[duplicated(pairs$feature)]
  table$feature[several] <- paste0(table$feature[several], "_", table$view[several])
  if (anyDuplicated(table[c("group", "sample", "feature")])) fail("a sample has two values of one feature")

  groups <- unique(table$group)
  sites <- gsub("^-|-$", "", gsub("[^a-z0-9]+", "-", tolower(groups)))
  for (i in seq_along(sites)) {
    if (!nzchar(sites[i]) || nchar(sites[i]) > 40 || sites[i] %in% sites[-i]) {
      fail("group '", groups[i], "' gives no site name of its own: '", sites[i], "'", hint = "rename the group")
    }
  }
  folders <- file.path(folder, sites)
  for (i in seq_along(sites)) {
    path <- file.path(folders[i], "long.csv")
    if (file.exists(path)) fail(path, " exists already, and was left as it is")
    dir.create(folders[i], recursive = TRUE, showWarnings = FALSE)
    rows <- table[table$group == groups[i], ]
    rows <- rows[order(rows$sample, method = "radix"), ]
    rows <- data.frame(id = rows$sample, view = rows$view, feature = rows$feature, value = number_text(rows$value))
    write.csv(rows, path, row.names = FALSE, fileEncoding = "UTF-8")
  }
  views <- lapply(split(table$feature, factor(table$view, unique(table$view))), unique)
  list(sites = named(folders, sites), views = views)
}

named <- function(x, names) {
  names(x) <- names
  x
}

parley_to_mofa <- function(sites, views = NULL) {
  of_site <- function(site) {
    folder <- sites[[site]]
    long <- list.files(folder, "^long[.]csv([.]gz)?$", full.names = TRUE)
    wide <- if (length(long) == 0) list.files(folder, "^view_.*[.]csv([.]gz)?$", full.names = TRUE)
    if (length(c(long, wide)) == 0) fail(folder, " has neither long.csv nor view_NAME.csv")
    parts <- c(lapply(long, read_table), lapply(wide, melt_view))
    cbind(do.call(rbind, parts), group = site)
  }
  table <- do.call(rbind, lapply(names(sites), of_site))
  table <- table[!is.na(table$value), ]
  if (!is.null(views)) table <- table[table$view %in% views, ]
  value <- suppressWarnings(as.numeric(table$value))
  if (anyNA(value)) {
    first <- table[is.na(value), ][1, ]
    fail("'", first$feature, "' of view '", first$view, "' is not a number", hint = "name the views to take")
  }
  data.frame(
    sample = table$id, feature = table$feature, view = table$view, group = table$group, value = value,
    stringsAsFactors = FALSE
  )
}

melt_view <- function(path) {
  wide <- read_table(path)
  features <- setdiff(names(wide), "id")
  data.frame(
    id = rep(wide$id, length(features)),
    view = sub("^view_(.*?)[.]csv([.]gz)?$", "\\1", basename(path), perl = TRUE),
    feature = rep(features, each = nrow(wide)),
    value = unlist(wide[features], use.names = FALSE),
    stringsAsFactors = FALSE
  )
}

long_factors <- function(table, names) {
  factors <- grep("^factor_", names(table), value = TRUE)
  parts <- lapply(factors, function(f) {
    cbind(table[names], factor = sub("factor_", "Factor", f), value = table[[f]])
  })
  do.call(rbind, parts)
}

parley_mofa_factors <- function(results) {
  long <- long_factors(parley_scores(results), c("id", "site"))
  data.frame(sample = long$id, factor = long$factor, value = long$value, group = long$site, stringsAsFactors = FALSE)
}

parley_mofa_weights <- function(results) {
  if (is.null(results$loadings)) fail("this study has no loadings")
  long_factors(results$loadings, c("feature", "view"))[c("feature", "factor", "value", "view")]
}
