# Makes few113.dta.gz and few110.dta.gz of few114.dta.gz by haven 2.5.1 and foreign 0.8-84 (of Debian 12).
d <- haven::read_dta(gzfile("few114.dta.gz"))
haven::write_dta(d, "few113.dta", version = 8)
d <- as.data.frame(haven::as_factor(d))
d$born <- format(d$born) # foreign gives days no format
foreign::write.dta(d, "few110.dta")
for (name in c("few113.dta", "few110.dta")) system2("gzip", c("-9nf", name))
