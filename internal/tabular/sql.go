package tabular

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL
	mssql "github.com/microsoft/go-mssqldb"
	_ "modernc.org/sqlite"
)

// Query is a question to a database whose answer is a table. Who may ask it stands neither here nor in any plan: in the
// environment, or in a file that only its owner can read.
type Query struct {
	Driver      string `json:"driver"`      // postgres, sqlserver, mysql or sqlite
	Query       string `json:"query"`       // one SELECT
	Environment string `json:"environment"` // variable that holds the connection, with the password
	Credentials string `json:"credentials"` // or file that does
	Database    string `json:"database"`    // of SQLite: its file

	Folder string `json:"-"` // from which paths are seen
}

// drivers are what database/sql calls them.
var drivers = map[string]string{"postgres": "pgx", "sqlserver": "sqlserver", "mysql": "mysql", "sqlite": "sqlite"}

var asks = regexp.MustCompile(`(?is)^(\s|--[^\n]*\n|/\*.*?\*/)*(select|with)\b`)

// connecting is how long a database may take to answer at all.
const connecting = 30 * time.Second

// Check says what is wrong with what was written; "" for nothing.
func (q *Query) Check() (what, hint string) {
	const ways = "driver: postgres, sqlserver, mysql or sqlite"
	switch {
	case drivers[q.Driver] == "":
		return fmt.Sprintf("driver %q is not known", q.Driver), ways
	case !asks.MatchString(q.Query):
		return "query is no question", "one SELECT, or WITH … SELECT, whose first column or the one under id " +
			"identifies the subjects"
	case q.Driver == "sqlite" && (q.Database == "" || q.Environment+q.Credentials != ""):
		return "SQLite has a file and no password", "database: FILE, and neither environment nor credentials"
	case q.Driver != "sqlite" && ((q.Environment == "") == (q.Credentials == "") || q.Database != ""):
		return "who may ask is not said, or twice", "environment: VARIABLE, or credentials: FILE, that holds the " +
			"connection with its password"
	}
	return "", ""
}

// connection is what the driver needs, which has the password in it.
func (q *Query) connection() (string, error) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(q.Folder, path)
	}
	switch {
	case q.Driver == "sqlite":
		path := at(q.Database)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("there is no database %s", path)
		}
		return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "mode=ro"}).String(),
			nil
	case q.Environment != "":
		if v := os.Getenv(q.Environment); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment has no variable %s, which should hold the connection to the database",
			q.Environment)
	}
	path := at(q.Credentials)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("the credentials cannot be read: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by others than its owner: chmod 600 %[1]s", path)
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// secrets are what no message may show: the connection and the password in it.
func (q *Query) secrets(connection string) []string {
	all := []string{connection}
	if u, err := url.Parse(connection); err == nil && u.User != nil {
		word, _ := u.User.Password()
		all = append(all, word, url.QueryEscape(word), url.PathEscape(word))
	}
	if c, err := mysql.ParseDSN(connection); err == nil {
		all = append(all, c.Passwd)
	}
	for _, m := range regexp.MustCompile(`(?i)\b(?:password|pwd)\s*=\s*(?:'([^']*)'|([^\s;&]*))`).FindAllStringSubmatch(
		connection, -1) {
		all = append(all, m[1], m[2])
	}
	return all
}

// plainly says what went wrong in one line, without the password.
func (q *Query) plainly(doing, connection string, err error) error {
	text := err.Error()
	if said := (*pgconn.PgError)(nil); errors.As(err, &said) {
		text = said.Error() // of all attempts to connect, what the database said
	}
	for _, secret := range q.secrets(connection) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return fmt.Errorf("%s (%s): %s", doing, q.Driver, strings.Join(strings.Fields(text), " "))
}

// Open asks the database, in one transaction that only reads where the database knows such, and returns the answer as
// CSV, a row at a time. Closing the text ends the question.
func (q *Query) Open() (_ io.ReadCloser, err error) {
	connection, err := q.connection()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(drivers[q.Driver], connection)
	if err != nil {
		return nil, q.plainly("the connection to the database is not written as its driver wants it", connection, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := func() error {
		cancel()
		return db.Close()
	}
	fail := func(doing string, err error) (io.ReadCloser, error) {
		return nil, errors.Join(q.plainly(doing, connection, err), end())
	}
	db.SetMaxOpenConns(1)
	soon, done := context.WithTimeout(ctx, connecting)
	defer done()
	if err := db.PingContext(soon); err != nil {
		return fail("the database does not let this program in", err)
	}
	options := &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}
	// the first knows no such transaction, and the second is opened to be read
	if q.Driver == "sqlserver" || q.Driver == "sqlite" {
		options = nil
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return fail("the database begins no transaction", err)
	}
	rows, err := tx.QueryContext(ctx, strings.TrimRight(strings.TrimSpace(q.Query), ";"))
	if err != nil {
		return fail("the database does not take the query", err)
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return fail("the answer cannot be read", err)
	}
	names, values, into := make([]string, len(types)), make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		names[i], into[i] = t.Name(), &values[i]
	}
	n := 0
	return inOrder(names, func(cells [][]byte) error {
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return q.plainly(fmt.Sprintf("the connection to the database was lost after %d rows", n),
					connection, err)
			}
			return io.EOF
		}
		n++
		err := rows.Scan(into...)
		for i, v := range values {
			if err == nil {
				cells[i], err = appendValue(cells[i][:0], v, types[i].DatabaseTypeName())
			}
		}
		if err != nil {
			return q.plainly(fmt.Sprintf("row %d cannot be read", n), connection, err)
		}
		return nil
	}, func() error {
		cancel()
		rows.Close() // what it says was said to whoever read
		tx.Rollback()
		return db.Close()
	}), nil
}

// appendValue appends what a driver gives of a value of a type.
func appendValue(b []byte, value any, kind string) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return b, nil
	case bool:
		return appendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case uint64:
		return strconv.AppendUint(b, v, 10), nil
	case float32:
		return AppendFloat(b, float64(v), 32), nil
	case float64:
		bits := 64
		if kind == "FLOAT4" { // PostgreSQL's real
			bits = 32
		}
		return AppendFloat(b, v, bits), nil
	case time.Time:
		if kind == "DATE" {
			return v.AppendFormat(b, time.DateOnly), nil
		}
		return appendTime(b, v.UTC()), nil
	case []byte:
		if kind == "UNIQUEIDENTIFIER" {
			var id mssql.UniqueIdentifier
			err := id.Scan(v)
			return append(b, id.String()...), err
		}
		return append(b, v...), nil
	case string:
		return append(b, v...), nil
	}
	return b, fmt.Errorf("a value of type %s has no place in a table: cast it to a number or a text in the query", kind)
}
