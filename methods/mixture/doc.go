// Package mixture is a Bayesian Gaussian mixture from rows that stay at their sites, which
// plans name graffl. [Method] is all that a program needs; a plan's [Options] choose
// what it does. Each site releases once the sums over its rows of cosines and sines at public frequencies (sketch),
// noised if the plan is private; the noise is part of the likelihood. After that one release nothing more is asked
// of a site. What arrives is taken as numbers that noise may have moved anywhere
// (messages.go), and vulnerability.go says in each report what an attacker can do with it. It grew out of GRAFFL (Hahn
// and Lee 2020), whose sections are cited. [Setup], [View], [Own] and [Attacker] serve the method as published, too.
//
// Everything here is a function of its arguments and seeds, to the last bit on one
// architecture, on any number of cores. What comes from elsewhere is checked and gives
// errors, never panics.
package mixture
