# Makes rows.sav.gz and few*.sav.gz, rows of rows.dta.gz and few118.dta.gz, by haven 2.5.1 (of Debian 12).
suppressMessages(library(haven))
d <- read_dta(gzfile("rows.dta.gz"))
write_sav(d, "rows.sav")
d <- read_dta(gzfile("few118.dta.gz"))
d$seen <- as.POSIXct("2020-02-29 13:14:15", tz = "UTC") + 86400.5 * 0:4
d$at <- hms::hms(seconds = c(0, 59, 3600.5, 86399, NA))
d$dose <- labelled_spss(d$dose, na_values = c(0), na_range = c(90, 99))
d$dose[2] <- 95
d$code <- labelled(c("a", "b", "", "a", "b"), c(`first, of two` = "a", second = "b"))
d$a_long_name_of_a_column <- c(1, NA, 1e10, -0.1, 300)
for (how in c("none", "byte", "zsav")) write_sav(d, paste0("few-", how, ".sav"), compress = how)
for (name in c("rows.sav", paste0("few-", c("none", "byte", "zsav"), ".sav"))) system2("gzip", c("-9nf", name))
