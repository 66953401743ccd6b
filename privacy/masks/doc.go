// Package masks makes sums over sites of which no single party learns more than the total: the
// protocol of a secure sum, without I/O, clocks or randomness of its own.
//
// A plan names some of its sites as openers. In the first phase every site adds one mask for each
// opener to its vector ([Party.Mask]): a stream of AES-256-CTR whose key both ends derive by X25519
// and HKDF from a key that serves this one vector. In the second phase each opener is shown which
// vectors are in the total, each with its site's signature, and answers with the sum of its own masks
// over them ([Party.Unmask]). The total of the vectors less what all openers answered is the total of
// the numbers, exactly: everything is arithmetic of integers modulo 2⁶⁴, 2¹²⁸ or 2²⁵⁶.
//
// Why it hides the sites' vectors. Take a coordinator that works together with the broker, with all
// openers but one, and with some other sites. Of the honest opener's streams it knows none: they are
// keyed by X25519 secrets of which each half belongs to an honest site. Replace them by uniformly
// drawn words, which nobody can tell apart if X25519 with HKDF-SHA-256 is PRF-ODH (Brendel, Fischlin,
// Günther and Janson 2017: an opener answers for one-time keys that others choose) and AES is
// pseudorandom. Then each honest site's masked vector is uniform
// whatever its numbers are, and the one thing that is not is what the honest opener answers: the sum
// of its streams over one set, which is the set's masked vectors less everything the coordinator could
// have worked out itself, that is, the total of the honest sites in the set. It answers for one set
// in each sum and never again (package privacy keeps that in the site's ledger), so that no two totals
// over the same vectors can be subtracted. The set is at least the plan's quorum, its members are the
// plan's sites, each once, and each vouches by its signature for study, round, task, shape, one-time
// key and masked bytes: nobody puts a site's mask into another sum, or a key of its own in a site's
// place.
//
// What it does not do. It does not keep a site from sending wrong numbers, nor an opener from sending
// a wrong opening: the total is then wrong, and nobody can be named. It says nothing about what the
// total itself tells, which is what differential privacy is for. An opener that is gone leaves its
// sums shut. All openers together can open each site's vector. An opener's long-lived key that is
// stolen later, by somebody who has kept masked vectors, counts as an opener that works with others.
package masks
