package policy

// DefaultText is [Default] as a file with comments, to begin one's
// own with.
const DefaultText = `# What this site allows. It outranks every plan.
# A key that is left out sets no limit, but for protection and max_delta.
policy: 1                # version of this format

# site: north            # whose policy this is; any site's if left out

protection: required     # differential privacy or nothing; optional also allows exact numbers

# The two data sets that a guarantee makes hard to tell apart differ by one
# subject more (add-remove), or by one subject's values (replace-one).
# adjacency: add-remove  # either if left out

# The most that one study may promise to give away about one subject.
study: {epsilon: 3, delta: 1e-5}

# The most that all studies together may, for as long as this site's store
# lives. What has been released cannot be taken back.
lifetime: {epsilon: 10, delta: 1e-5, filter: renyi}

# max_delta: 1e-5        # largest δ of a guarantee; min(1e-5, 1/(100 n)) for n subjects if left out

minimum:                 # below which this site stays away
  subjects: 50           # rows at this site
  pattern_subjects: 10   # subjects of a pattern of present views with numbers of its own
  sites: 3               # sites whose contributions a round needs: the plan's quorum

# methods: [mvppca]      # allowed; all if left out

# per_release: true      # also join studies that promise nothing in total

# Studies that are approved without asking a person: by these methods, with
# differential privacy, and a total for one subject within this budget.
# pre_approval: {methods: [mvppca], study: {epsilon: 1, delta: 1e-5}}
`
