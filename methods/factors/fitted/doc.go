// Package fitted is a fitted model and what can be done with it: [LoadModel] reads
// model.json, and a [Model] then describes itself, transforms and imputes rows, draws
// subjects, is exported, and is compared with others, as the interfaces of package method ask.
//
// A model is a function of its file alone; rows are read one by one, and only what a
// method's comment says is kept of them. What does not fit together gives an error.
package fitted
