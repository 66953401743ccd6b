// Package evaluate measures fitted models and prepares the conditions under
// which they are compared: how subjects are spread over sites ([Assign],
// [Scheme], [Lacking]), which are held out ([Folds]), how values are scaled
// ([FitMinMax]), what is scored ([Describe] for descriptions of features,
// [Outcome.Judge] for predictions), what learns next to nothing ([FitPCA],
// [Outcome.FitBaseRate]) and how two methods compare ([Paired]). It knows neither
// engine nor methods: it sees a [Model].
//
// Everything random is a function of a seed and the subjects' ids, never of
// the order in which they arrive. Everything here reads rows in one process,
// so it is for simulations, for one site's own data, and for statistics that
// were already released; nothing it computes may leave a site by itself.
package evaluate
