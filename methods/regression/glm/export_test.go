package glm

// Income is the example's data, for tests of packages above this one.
var Income = income
