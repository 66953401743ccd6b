package pvi

// What the tests outside of the package look at.
var Central = central

const ModelFormat = modelFormat
