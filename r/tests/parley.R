# Tests with the program and the examples of Parley's repository:
#     PARLEY=/path/to/parley PARLEY_EXAMPLES=/path/to/examples R CMD check parley_*.tar.gz
library(parley)

examples <- Sys.getenv("PARLEY_EXAMPLES")
if (!dir.exists(examples) || Sys.getenv("PARLEY") == "") {
  stop("set PARLEY to the program, and PARLEY_EXAMPLES to the folder of examples")
}
folder <- tempfile("parley")
dir.create(folder)
at <- function(...) file.path(folder, ...)

refused <- function(expression, says) {
  said <- tryCatch({
    expression
    "no error"
  }, error = conditionMessage)
  if (!grepl(says, said)) stop("expected an error with '", says, "', got: ", said)
}

# Reading.
study <- parley_run(file.path(examples, "alzheimer/plan.yaml"), at("study"))
raw <- read.csv(at("study/model/loadings.csv"), colClasses = "character")
stopifnot(
  identical(study$loadings$feature, raw$feature),
  identical(study$loadings$factor_1, as.numeric(raw$factor_1)),
  study$metrics[["subjects"]] == 333,
  identical(study$sites, c("centre", "north", "south")),
  setequal(study$rounds$site, study$sites),
  is.null(study$privacy), is.null(study$coefficients)
)
scores <- parley_scores(study)
raw <- read.csv(at("study/sites/north/scores.csv"), colClasses = "character")
stopifnot(
  nrow(scores) == 333,
  identical(parley_scores(study, "north")$id, raw$id),
  identical(parley_scores(study, "north")$sd_6, as.numeric(raw$sd_6))
)
together <- subset(study$variance_explained, factor == 0)
stopifnot(
  isTRUE(all.equal(together$r2, unname(study$metrics[paste0("r2/", together$view)]))),
  max(study$variance_explained$factor) == 6,
  "feature" %in% names(parley_table(study, "top-loadings")),
  nrow(parley_table(study, "overview", "figures")) > 0,
  any(grepl("333", capture.output(print(study))))
)
refused(parley_table(study, "nothing"), "there are: .*top-loadings")
refused(parley_results(examples), "has no metrics.json")
refused(parley_scores(study, "nowhere"), "no site nowhere")

private <- parley_run(file.path(examples, "alzheimer/private.yaml"), at("private"))
stopifnot(private$privacy$holds, private$privacy$total$epsilon == 3)

# Joining.
subjects <- file.path(examples, "alzheimer/data/subjects.csv.gz")
joined <- parley_join(study, subjects)
stopifnot(nrow(joined) == 333, setequal(joined$group, c("Impaired", "Control")))
writeLines(c("id,value,label", "007,1.5,F", "NA,nUlL,nA", "1e3,2,T"), at("ids.csv"))
three <- data.frame(id = c("007", "NA", "1e3"), factor_1 = 0)
joined <- parley_join(three, at("ids.csv"))
stopifnot(identical(joined$value, c(1.5, NA, 2)), identical(joined$label, c("F", NA, "T")))
writeBin(c(as.raw(c(0xef, 0xbb, 0xbf)), charToRaw("id,x\n007,1\n")), at("mark.csv"))
stopifnot(identical(parley_join(three[1, ], at("mark.csv"))$x, 1))
known <- data.frame(id = scores$id, x = 1)
refused(parley_join(scores, data.frame(id = 1:2)), "not text")
refused(parley_join(scores, rbind(known, known)), "more than one row")
refused(parley_join(scores, data.frame(id = "nobody")), "no id of the scores")
refused(parley_join(scores, cbind(known, factor_1 = 0)), "both have a column 'factor_1'")
twice <- data.frame(site = c("a", "b"), id = "1", factor_1 = 0)
refused(parley_join(twice, data.frame(id = "1", age = 50)), "same id")
stopifnot(identical(parley_join(twice, data.frame(site = "b", id = "1", age = 50))$age, c(NA, 50)))

# Running: what has ended is read again, and what cannot run says why.
again <- parley_run(file.path(examples, "alzheimer/plan.yaml"), at("study"))
stopifnot(identical(parley_scores(again), scores))
error <- tryCatch(parley_run(at("nowhere.yaml"), at("none")), parley_error = identity)
stopifnot(
  inherits(error, "parley_error"), error$code == 1,
  grepl("nowhere.yaml", conditionMessage(error)), !grepl("parley: error", conditionMessage(error))
)
refused(parley_run("plan.yaml", at("none"), program = "/no/such/program"), "put parley on PATH")

# Data folders.
day <- as.Date(c("2020-02-29", NA))
lab <- data.frame(x = c(0.1 + 0.2, NA), id = c("01", "02"), n = c(3L, NA), kind = factor(c("a \"b\", c", NA)),
  at = as.POSIXct(c("2020-02-29 12:30:00", "2021-01-01 00:00:00"), tz = "UTC"))
parley_write_data(at("cells"), data.frame(id = c("01", "02"), well = c(TRUE, FALSE), seen = day), list(lab = lab))
stopifnot(
  identical(readLines(at("cells/subjects.csv")), c("id,well,seen", "01,TRUE,2020-02-29", "02,FALSE,")),
  identical(readLines(at("cells/view_lab.csv")), c("id,x,n,kind,at",
    "01,0.30000000000000004,3,\"a \"\"b\"\", c\",2020-02-29T12:30:00", "02,,,,2021-01-01T00:00:00"))
)
good <- data.frame(id = "1", x = 1)
refused(parley_write_data(at("refused"), good, list(v = data.frame(id = 1, x = 1))), "are not text")
refused(parley_write_data(at("refused"), good, list(v = rbind(good, good))), "more than one row for 1")
refused(parley_write_data(at("refused"), good, list(v = data.frame(id = "1", x = Inf))), "infinite number")
refused(parley_write_data(at("refused"), good, list("a/b" = good)), "cannot be the name of a view")
refused(parley_write_data(at("cells"), good, list(v = good)), "exists already")
stopifnot(!any(grepl("refused", list.files(folder, all.files = TRUE))))

# Plans, and a regression whose ids would be lost as numbers.
set.seed(1)
none <- list(protection = "none")
two <- at("two")
for (site in c("east", "west")) {
  ids <- sprintf("%04d", 0:119)
  blood <- data.frame(id = ids, marker = rnorm(120), smoker = sample(c("yes", "no"), 120, TRUE))
  ill <- ifelse(runif(120) < 0.3 + 0.4 * (blood$marker > 0), "ill", "well")
  parley_write_data(file.path(two, site), data.frame(id = ids, outcome = ill), list(blood = blood))
}
plan <- parley_write_plan(file.path(two, "plan.yaml"), "two-sites", c(east = "east", west = "west"),
  list(blood = blood),
  list(name = "regression", outcome = list(column = "outcome", levels = c("well", "ill"))), none,
  question = "Does the marker go with illness?", subjects = "outcome"
)
regression <- parley_run(plan, file.path(two, "results"))
table <- regression$coefficients
marker <- table[table$feature == "marker", ]
stopifnot(marker$estimate > 0, marker$low_95 < marker$estimate, is.null(regression$loadings))
refused(parley_scores(regression), "scores of no site")
refused(parley_write_plan(plan, "p", "a", list(v = blood), list(), none), "exists already")

frame <- data.frame(id = "1", age = 50, on = TRUE, a = "x: 1")
names(frame)[4] <- "stage: a"
text <- parley_plan_text("p", c("a", "b"), list(v = frame), list(name = "factors", latent = 1), none,
  ranges = list(age = c(0, 120))
)
for (line in c(
  "      - name: age\n        range: [0, 120]\n",
  "      - name: \"on\"\n        kind: category\n        levels: [\"FALSE\", \"TRUE\"]\n",
  "      - name: \"stage: a\"\n        kind: category\n        levels: [\"x: 1\"]\n"
)) stopifnot(grepl(line, text, fixed = TRUE))
private <- list(
  protection = "differential", unit = "subject", adjacency = "add-remove", total = list(epsilon = 1, delta = 1e-5)
)
sex <- data.frame(sex = c("f", "m"))
refused(parley_plan_text("p", "a", list(v = sex), list(name = "regression"), private), "declare them")
sex$sex <- factor(sex$sex, levels = c("m", "f", "x"))
text <- parley_plan_text("p", "a", list(v = sex), list(name = "regression"), private)
stopifnot(grepl("levels: [m, f, x]", text, fixed = TRUE), grepl("delta: 1e-05", text), grepl("sites: [a]", text, fixed = TRUE))
refused(parley_plan_text("p", "a", list(v = sex), list(), none, ranges = list(size = 0:1)), "no feature 'size'")
refused(parley_plan_text("p", "a", list(v = data.frame(t = Sys.Date())), list(), none), "neither number nor category")

# MOFA2's tables, there and back with a study between.
mofa <- expand.grid(
  feature = c("A", "B", "C"), view = c("rna", "protein"), i = 0:39, group = c("Group_1", "Group_2"),
  stringsAsFactors = FALSE
)
mofa$sample <- sprintf("%s-%02d", mofa$group, mofa$i)
truth <- rnorm(80)
names(truth) <- unique(mofa$sample)
mofa$value <- truth[mofa$sample] + rnorm(nrow(mofa), sd = 0.5)
imported <- parley_from_mofa(mofa, at("mofa"))
stopifnot(
  identical(names(imported$sites), c("group-1", "group-2")),
  identical(imported$views, list(rna = c("A_rna", "B_rna", "C_rna"), protein = c("A_protein", "B_protein", "C_protein")))
)
plan <- parley_write_plan(at("mofa/plan.yaml"), "mofa", imported$sites, imported$views, list(name = "factors", latent = 1), none)
results <- parley_run(plan, at("mofa/results"))
factors <- parley_mofa_factors(results)
weights <- parley_mofa_weights(results)
stopifnot(
  nrow(factors) == 80, all(factors$factor == "Factor1"), nrow(weights) == 6,
  abs(cor(factors$value, truth[factors$sample])) > 0.9
)
back <- parley_to_mofa(imported$sites)
there <- mofa$value[match(paste(back$sample, back$feature), paste0(mofa$sample, " ", mofa$feature, "_", mofa$view))]
stopifnot(nrow(back) == nrow(mofa), identical(back$value, unname(there)))
stopifnot(setequal(parley_to_mofa(c(all = file.path(examples, "alzheimer/data")), "clinic")$view, "clinic"))
refused(parley_to_mofa(c(east = file.path(two, "east"))), "not a number")
refused(parley_from_mofa(mofa, at("mofa")), "exists already")
refused(parley_from_mofa(rbind(mofa, mofa), at("m")), "two values")
refused(parley_from_mofa(mofa[names(mofa) != "view"], at("m")), "no column 'view'")
refused(parley_from_mofa(transform(mofa, sample = i), at("m")), "not text")

# Pictures.
drawn <- function(plot, layer = 1) ggplot2::layer_data(plot, layer)
stopifnot(
  nrow(drawn(parley_score_plot(study, subjects = subjects, colour = "group"))) == 333,
  nrow(drawn(parley_variance_plot(study))) == 24,
  nrow(drawn(parley_loading_plot(study, features = 5), 3)) == 5,
  nrow(drawn(parley_coefficient_plot(regression), 3)) == nrow(table)
)
largest <- study$loadings[which.max(abs(study$loadings$factor_1)), ]
shown <- parley_loading_plot(study, features = 5)$data
stopifnot(grepl(largest$feature, shown$label[1], fixed = TRUE), shown$low[1] < shown$loading[1])
refused(parley_score_plot(study, 9), "no column 'factor_9'")
refused(parley_loading_plot(study, 7), "no factor 7")
refused(parley_coefficient_plot(study), "no coefficients")
refused(parley_variance_plot(regression), "no factors")

# The code of the page about this package.
lines <- readLines(file.path(examples, "../docs/how-to/use-from-r-and-python.md"), encoding = "UTF-8")
starts <- which(lines == "```r")
blocks <- lapply(starts, function(i) lines[(i + 1):(i + which(lines[-(1:i)] == "```")[1] - 1)])
prepared <- list(
  function() {
    dir.create("results")
    file.symlink(at("study"), "results/mine")
    dir.create("data")
    writeLines(readLines(subjects), "data/subjects.csv")
  },
  function() {
    cohort <- data.frame(
      id = sprintf("%03d", 1:120), hospital = c("basel", "bern"), relapse = sample(c("no", "yes"), 120, TRUE),
      age = rnorm(120, 60, 9), crp = rnorm(120, 5, 2)
    )
    write.csv(cohort, "cohort.csv", row.names = FALSE)
  },
  function() {
    for (site in c("north", "south")) {
      dir.create(site)
      ids <- sprintf("%s%02d", site, 1:50)
      write.csv(data.frame(id = ids, matrix(rnorm(300), 50)), file.path(site, "view_clinic.csv"), row.names = FALSE)
      write.csv(data.frame(id = ids), file.path(site, "subjects.csv"), row.names = FALSE)
    }
  },
  function() {
    long <- expand.grid(feature = letters[1:8], view = "rna", i = 1:50, group = c("a", "b"))
    long$sample <- paste0(long$group, long$i)
    write.csv(cbind(long, value = rnorm(nrow(long))), "mofa.csv", row.names = FALSE)
  }
)
stopifnot(length(blocks) == 4)
for (i in seq_along(blocks)) {
  dir.create(at(paste0("page", i)))
  back <- setwd(at(paste0("page", i)))
  prepared[[i]]()
  names <- new.env()
  eval(parse(text = blocks[[i]]), names)
  stopifnot(basename(names$results$path) == "mine")
  setwd(back)
}
