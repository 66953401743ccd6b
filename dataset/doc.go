// Package dataset reads subjects × views tables: who was measured, in which
// views, with which values. [Open] reads a data set from disk, [Collect] keeps
// one in memory, [Describe] summarises one in a single pass, [Write] and
// [Split] write them. What all of them exchange is a [Source].
//
// # On disk
//
// A data set is a folder with subjects.csv (column id, then subject columns
// such as group or sex) and one view_NAME.csv for each view (column id, then
// features), joined on id. A subject who lacks a view has no row in its file.
// Or it is one long table with the columns id, view, feature and value, named
// long.csv in a folder or given by itself, with an optional subjects.csv
// beside it; without one the subjects are those of the long table.
//
// Files are UTF-8, separated by commas, with one header row and decimal points;
// each may be compressed with gzip. Space around a cell that is not quoted is
// ignored. A cell that is empty, or NA, NaN or null in any case, is a missing
// measurement. A row without any measurement counts as lacking the view.
//
// Files sorted by id, compared as bytes, are read in bounded memory whatever
// their size. Files in another order are sorted on the fly, with temporary
// files where they are large, up to maxUnsorted bytes.
//
// # Names
//
// Files are found by their exact names. If one is missing and another has a name
// much like it (view_Clinic.csv, clinic.xlsx, view_clinc.tsv), [Open] refuses the
// data set: nobody loses a view because of how its file is named.
//
// # Errors
//
// Everything wrong with the files is reported together, as a problem.List with
// file, line and column. These messages quote cells and ids: they are for the
// people of the site and must not be sent elsewhere.
package dataset
