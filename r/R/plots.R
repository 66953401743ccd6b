# The main pictures, drawn with ggplot2.

globalVariables(".data")

need_ggplot <- function() {
  if (!requireNamespace("ggplot2", quietly = TRUE)) {
    fail("pictures need the package ggplot2", hint = "install.packages(\"ggplot2\")")
  }
}

parley_score_plot <- function(results, x = 1, y = 2, subjects = NULL, colour = "site") {
  need_ggplot()
  scores <- parley_scores(results)
  if (!is.null(subjects)) scores <- parley_join(scores, subjects)
  columns <- c(paste0("factor_", c(x, y)), colour)
  lacking <- setdiff(columns, names(scores))
  if (length(lacking) > 0) fail("there is no column '", lacking[1], "' among ", paste(names(scores), collapse = ", "))
  ggplot2::ggplot(scores, ggplot2::aes(.data[[columns[1]]], .data[[columns[2]]], colour = .data[[colour]])) +
    ggplot2::geom_point(size = 1) +
    ggplot2::labs(x = paste("factor", x), y = paste("factor", y), colour = colour)
}

parley_loading_plot <- function(results, factor = 1, features = 20) {
  need_ggplot()
  if (is.null(results$loadings)) fail("this study has no loadings")
  name <- paste0("factor_", factor)
  table <- results$loadings
  if (!name %in% names(table)) fail("there is no factor ", factor)
  table <- head(table[order(-abs(table[[name]])), ], features)
  errors <- table[[paste0("se_", factor)]]
  if (is.null(errors)) errors <- 0
  shown <- data.frame(
    label = paste0(table$feature, " (", table$view, ")"), loading = table[[name]],
    low = table[[name]] - 1.96 * errors, high = table[[name]] + 1.96 * errors
  )
  shown$label <- base::factor(shown$label, rev(shown$label))
  forest(shown, "loading", paste0("loading on factor ", factor, ", in standard deviations of a scaled feature"))
}

forest <- function(shown, middle, title) {
  ggplot2::ggplot(shown, ggplot2::aes(.data[[middle]], .data$label)) +
    ggplot2::geom_vline(xintercept = 0, colour = "grey50") +
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$low, xmax = .data$high)) +
    ggplot2::geom_point() +
    ggplot2::labs(x = title, y = NULL)
}

parley_variance_plot <- function(results) {
  need_ggplot()
  table <- results$variance_explained
  if (is.null(table)) fail("this study has no factors")
  table <- table[table$factor > 0, ]
  table$view <- factor(table$view, unique(table$view))
  table$factor <- factor(table$factor, rev(unique(table$factor)))
  ggplot2::ggplot(table, ggplot2::aes(.data$view, .data$factor, fill = .data$r2)) +
    ggplot2::geom_tile() +
    ggplot2::scale_fill_gradient(low = "white", high = "#08519c", limits = c(0, NA)) +
    ggplot2::labs(x = "view", y = "factor", fill = "share of\nvariance\nexplained")
}

parley_coefficient_plot <- function(results) {
  need_ggplot()
  table <- results$coefficients
  if (is.null(table)) fail("this study has no coefficients")
  label <- table$feature
  if ("class" %in% names(table)) label <- ifelse(table$class == "", label, paste0(table$class, ": ", label))
  shown <- data.frame(
    label = factor(label, rev(label)), coefficient = table$estimate, low = table$low_95, high = table$high_95
  )
  forest(shown, "coefficient", "coefficient, with its interval of 95 %")
}
