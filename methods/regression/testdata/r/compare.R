# Made data.csv, cuts.csv and estimates.csv, which TestEstimatesAreThoseOfR reads:
#     Rscript compare.R
# by R 4 with the packages survival and nnet.
library(survival)
library(nnet)
set.seed(20261128)
n <- 600
age <- round(rnorm(n, 60, 10), 1)
dose <- round(rexp(n, 1 / 2), 2)
sex <- sample(c("f", "m"), n, replace = TRUE)
x <- 0.04 * (age - 60) + 0.2 * dose - 0.5 * (sex == "m")
time <- rweibull(n, shape = 1.3, scale = 20 * exp(-x / 1.3))
end <- runif(n, 10, 60)
event <- as.integer(time <= end)
time <- signif(pmin(time, end), 6)
class <- c("a", "b", "c")[1 + rowSums(outer(runif(n), 1:2, function(u, k) u > plogis(k - 1.5 - x / 2)))]

# Sixty periods with about as many events each; until is the end of the one that the follow-up ended in.
cuts <- signif(unname(quantile(time[event == 1], seq(1, 60) / 60)), 6)
cuts[60] <- ceiling(max(time[event == 1]))
period <- pmin(findInterval(time, cuts, left.open = TRUE) + 1, 60)
until <- cuts[period]
data <- data.frame(id = sprintf("p%04d", 1:n), age, dose, sex, time, until, event = ifelse(event == 1, "yes", "no"), class,
  visits = rpois(n, exp(0.5 + x / 2)))
write.csv(data, "data.csv", row.names = FALSE, quote = FALSE)
write.csv(data.frame(cut = cuts), "cuts.csv", row.names = FALSE)

rows <- do.call(rbind, lapply(1:n, function(i) data.frame(age = age[i], dose = dose[i], male = as.integer(sex[i] == "m"),
  period = 1:period[i], died = c(rep(0, period[i] - 1), event[i]))))
hazard <- glm(died ~ age + dose + male + factor(period) - 1, binomial("cloglog"), rows, control = list(epsilon = 1e-12, maxit = 100))
cox <- coxph(Surv(time, event) ~ age + dose + (sex == "m"), ties = "efron")
multi <- multinom(class ~ age + dose + (sex == "m"), trace = FALSE, reltol = 1e-14, maxit = 1000)
terms <- c("age", "dose", "sex=m")
of <- function(model, estimate, se, class = "") data.frame(model, class, term = terms, estimate, se)
h <- coef(summary(hazard))[c("age", "dose", "male"), 1:2]
m <- summary(multi)
male <- as.integer(sex == "m")
fits <- list("glm logit" = glm((event == 1) ~ age + dose + male, binomial, control = list(epsilon = 1e-12)),
  "glm poisson" = glm(data$visits ~ age + dose + male, poisson, control = list(epsilon = 1e-12)), "lm" = lm(time ~ age + dose + male))
write.csv(rbind(do.call(rbind, lapply(names(fits), function(name) of(name, coef(summary(fits[[name]]))[-1, 1], coef(summary(fits[[name]]))[-1, 2]))),
  of("glm cloglog", h[, 1], h[, 2]),
  of("coxph", coef(cox), sqrt(diag(vcov(cox)))),
  of("multinom", m$coefficients["b", -1], m$standard.errors["b", -1], "b"),
  of("multinom", m$coefficients["c", -1], m$standard.errors["c", -1], "c")), "estimates.csv", row.names = FALSE, quote = FALSE)
