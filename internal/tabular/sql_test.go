package tabular_test

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/tabular"
	"parley/internal/testkit"
)

// answer is what a database answers as CSV.
func answer(t *testing.T, q tabular.Query) (string, error) {
	t.Helper()
	r, err := q.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}

// prepare runs statements.
func prepare(t *testing.T, driver, connection string, statements ...string) {
	t.Helper()
	db := testkit.Get(sql.Open(driver, connection))(t)
	defer db.Close()
	for _, s := range statements {
		testkit.Get(db.Exec(s))(t)
	}
}

// oneLine checks that an error is one line that says what is wanted and holds no password.
func oneLine(t *testing.T, err error, want string) {
	t.Helper()
	got := fmt.Sprint(err)
	if !strings.Contains(got, want) || strings.Contains(got, "\n") || strings.Contains(got, password) ||
		strings.Contains(got, "wide") {
		t.Errorf("got %q, want %s", got, want)
	}
}

// PostgreSQL's types become cells as other formats have them, and what goes wrong is said in one line.
func TestPostgres(t *testing.T) {
	connection, stop := postgres(t)
	t.Setenv("HOSPITAL", connection)
	prepare(t, "pgx", connection, `create table lab (person int, crp double precision, dose real, n numeric(8,3), yes `+
		`boolean, day date, at timestamptz, stage text, big bigint)`,
		`insert into lab values (2, 0.1, 0.1, -12.500, true, '2020-02-29', '2020-02-29 12:00:00.5+00', 'a, "b"', `+
			`9007199254740993), (10, null, null, null, null, null, null, null, null), (1, 1e-7, 3, 4, false, `+
			`'1950-01-01', '2020-02-29 01:00+01', '', -1)`)
	q := tabular.Query{Driver: "postgres", Environment: "HOSPITAL",
		Query: "-- of the laboratory\nselect * from lab order by person;"}
	got, err := answer(t, q)
	want := "person,crp,dose,n,yes,day,at,stage,big\n1,1e-07,3,4.000,FALSE,1950-01-01,2020-02-29,,-1\n2,0.1,0.1," +
		"-12.500,TRUE,2020-02-29,2020-02-29T12:00:00.5,\"a, \"\"b\"\"\",9007199254740993\n10,,,,,,,,\n"
	if err != nil || got != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
	for says, own := range map[string]tabular.Query{
		"the database does not take the query (postgres): ERROR: relation \"labs\" does not exist": {
			Query: "select * from labs"},
		"cannot execute SELECT in a read-only transaction": {
			Query: "with x as (insert into lab values (3) returning person) select * from x"},
		"cannot insert multiple commands": {
			Query: "select 1; delete from lab"},
		"row 1 cannot be read": {
			Query: "select 1/(person-1) from lab order by person desc"},
	} {
		own.Driver, own.Environment = "postgres", "HOSPITAL"
		if _, err := answer(t, own); says == "row 1 cannot be read" {
			oneLine(t, err, "division by zero")
		} else {
			oneLine(t, err, says)
		}
	}
	omop(t, connection)
	t.Setenv("HOSPITAL", strings.Replace(connection, "wide%20open", "wide%20shut", 1))
	_, err = answer(t, q)
	oneLine(t, err, "the database does not let this program in (postgres)")
	oneLine(t, err, "password authentication failed")
	t.Setenv("HOSPITAL", connection)
	long := q // that is still being read when the server goes
	long.Query = "select i, repeat('x', 1000) from generate_series(1, 1000000) i"
	r := testkit.Get(long.Open())(t)
	testkit.Get(io.ReadFull(r, make([]byte, 1<<16)))(t)
	stop()
	_, err = io.ReadAll(r)
	oneLine(t, err, "the connection to the database was lost after ")
	r.Close()
	_, err = answer(t, q)
	oneLine(t, err, "does not let this program in (postgres): failed to connect")
}

// omop asks the query of the documentation of a database in the OMOP common data model: of each person of the cohort
// the last values in the named units, until the end of the year.
func omop(t *testing.T, connection string) {
	t.Helper()
	page := string(testkit.Get(os.ReadFile("../../docs/how-to/map-a-sites-file.md"))(t))
	_, page, _ = strings.Cut(page, "### OMOP")
	_, query, _ := strings.Cut(page, "query: |\n")
	query, _, _ = strings.Cut(query, "```")
	prepare(t, "pgx", connection, `create table measurement (measurement_id int, person_id int, measurement_concept_id int,
		measurement_date date, value_as_number numeric, unit_concept_id int)`,
		`create table cohort (cohort_definition_id int, subject_id int)`,
		`insert into cohort values (17, 1), (17, 2), (18, 3)`,
		`insert into measurement values (1, 1, 3016723, '2020-01-01', 1.1, 8840), (2, 1, 3016723, '2023-01-01', 1.4, 8840),
		(3, 1, 3016723, '2025-01-01', 9, 8840), (4, 1, 3016723, '2024-01-01', 120, 8749), (5, 1, 3000963, '2020-01-01', 13, 8713),
		(6, 2, 3000963, '2020-05-05', 12, 8713), (7, 2, 3000963, '2020-05-05', 12.5, 8713), (8, 3, 3016723, '2020-01-01', 2, 8840)`)
	got, err := answer(t, tabular.Query{Driver: "postgres", Environment: "HOSPITAL", Query: query})
	if want := "person_id,creatinine,hemoglobin\n1,1.4,13\n2,,12.5\n"; err != nil || got != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
	}
}

// SQLite is opened to be read; a file with a connection must be its owner's alone.
func TestSQLiteAndCredentials(t *testing.T) {
	dir := t.TempDir()
	prepare(t, "sqlite", filepath.Join(dir, "hospital #1.db"), `create table lab (id text, crp real, n integer)`,
		`insert into lab values ('b', 0.1, 3), ('a', null, -9)`)
	q := tabular.Query{Driver: "sqlite", Database: "hospital #1.db", Query: "SELECT id, crp, n FROM lab", Folder: dir}
	if got, err := answer(t, q); err != nil || got != "id,crp,n\nb,0.1,3\na,,-9\n" {
		t.Errorf("%v: %s", err, got)
	}
	for says, own := range map[string]tabular.Query{
		"no such table: labs": {Query: "select * from labs", Database: "hospital #1.db"},
		"attempt to write a readonly": {Query: "with x as (select 1) insert into lab select 'c', 1, 1 from x",
			Database: "hospital #1.db"},
		"there is no database": {Query: q.Query, Database: "nowhere.db"},
	} {
		own.Driver, own.Folder = "sqlite", dir
		_, err := answer(t, own)
		oneLine(t, err, says)
	}
	for name, mode := range map[string]os.FileMode{"open": 0o644, "own": 0o600} {
		testkit.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("postgres://a:wide%20open@127.0.0.1:1/x"), mode))
		_, err := answer(t, tabular.Query{Driver: "postgres", Credentials: name, Folder: dir, Query: "select 1"})
		oneLine(t, err, map[string]string{"open": "can be read by others than its owner: chmod 600",
			"own": "does not let this program in"}[name])
	}
	_, err := answer(t, tabular.Query{Driver: "postgres", Environment: "PARLEY_NO_SUCH", Query: "select 1"})
	oneLine(t, err, "the environment has no variable PARLEY_NO_SUCH")
}

// A connection that no driver can read, and a server that is not there, are said without the password.
func TestOtherDrivers(t *testing.T) {
	for connection, own := range map[string]tabular.Query{
		"root:wide open@tcp(127.0.0.1:1)/x":                   {Driver: "mysql"},
		"root:wide open@nonsense":                             {Driver: "mysql"},
		"sqlserver://sa:wide%20open@127.0.0.1:1?database=x":   {Driver: "sqlserver"},
		"server=127.0.0.1;port=1;user id=sa;password=wide;x=": {Driver: "sqlserver"},
		"host=127.0.0.1 port=1 password='wide open' user=a":   {Driver: "postgres"},
		"postgres://a:wide open@[::1":                         {Driver: "postgres"},
	} {
		t.Setenv("HOSPITAL", connection)
		own.Environment, own.Query = "HOSPITAL", "select 1"
		_, err := answer(t, own)
		oneLine(t, err, "database")
	}
	for says, q := range map[string]tabular.Query{
		`driver "oracle" is not known`:      {Driver: "oracle", Query: "select 1"},
		"query is no question":              {Driver: "mysql", Environment: "X", Query: "delete from lab"},
		"who may ask is not said, or twice": {Driver: "mysql", Query: "select 1"},
		"SQLite has a file and no password": {Driver: "sqlite", Query: "select 1", Environment: "X"},
		"": {Driver: "sqlserver", Query: " /* a */ WITH x AS (SELECT 1) SELECT 2",
			Credentials: "x"},
	} {
		if what, _ := q.Check(); what != says {
			t.Errorf("got %q, want %q", what, says)
		}
	}
}
