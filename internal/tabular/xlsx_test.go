package tabular

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// sheetOf is a workbook as its parts are stored, with one sheet of this XML.
func sheetOf(t testing.TB, properties, sheet string) []byte {
	t.Helper()
	const rels = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for name, part := range map[string]string{
		"_rels/.rels": rels + `<Relationship Id="rId1" ` +
			`Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" ` +
			`Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml": `<workbook xmlns:r="x"><workbookPr ` + properties +
			`/><sheets><sheet name="data" sheetId="1" r:id="rId7"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": rels + `<Relationship Id="rId7" ` +
			`Type="http://purl.oclc.org/ooxml/officeDocument/relationships/worksheet" ` +
			`Target="worksheets/one.xml"/><Relationship Id="rId2" Type="x/sharedStrings" ` +
			`Target="/xl/words.xml"/><Relationship Id="rId3" Type="x/styles" Target="styles.xml"/></Relationships>`,
		"xl/words.xml": `<sst><si><t>id</t></si><si><r><t>a</t></r><r><t>ge</t></r><rPh><t>spoken</t></rPh>` +
			`</si><si><t xml:space="preserve"> x_x000D_</t></si></sst>`,
		"xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="yyyy\-mm\-dd;@"/><numFmt ` +
			`numFmtId="171" formatCode="[h]:mm"/><numFmt numFmtId="172" formatCode="&quot;days&quot; 0.0"/><numFmt ` +
			`numFmtId="173" formatCode="[$-407]d. mmm yy hh:mm AM/PM"/></numFmts><cellXfs><xf numFmtId="0"/><xf ` +
			`numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="172"/><xf numFmtId="173"/><xf ` +
			`numFmtId="20"/></cellXfs></styleSheet>`,
		"xl/worksheets/one.xml": `<worksheet><sheetData>` + sheet + `</sheetData></worksheet>`,
	} {
		testkit.Get(testkit.Get(out.Create(name))(t).Write([]byte(part)))(t)
	}
	testkit.Do(t, out.Close())
	return b.Bytes()
}

func readXLSX(t *testing.T, data []byte) (string, error) {
	t.Helper()
	r, err := XLSX(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	defer r.Close()
	return string(testkit.Get(io.ReadAll(r))(t)), nil
}

// Cells keep their types: days of both systems, times, truth values, formulas by their values, errors by their names.
func TestXLSXTypes(t *testing.T) {
	const sheet = `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c ` +
		`t="inlineStr"><is><t>c</t></is></c></row><row r="3"><c r="A3"><v>7</v></c><c r="B3" ` +
		`s="1"><v>43890</v></c><c r="C3" s="2"><v>43890.5</v></c></row><row r="4"><c r="A4" t="s"><v>2</v></c><c ` +
		`r="C4" t="b"><v>1</v></c></row><row><c t="str"><f>A1</f><v>w</v></c><c t="b"><v>0</v></c><c ` +
		`t="e"><v>#N/A</v></c></row><row><c><f>1+1</f><v>2</v></c><c s="3"><v>1.5</v></c><c ` +
		`s="4"><v>1.5</v></c></row><row><c><v>3.2000000000000002</v></c><c s="5"><v>43890.75</v></c><c ` +
		`s="6"><v>0.25</v></c></row><row><c t="str"><f>IF(A1=1,1,"")</f><v></v></c><c s="1"><v>59</v></c><c ` +
		`t="d"><v>2020-02-29T00:00:00</v></c></row>`
	for properties, days := range map[string][4]string{"": {"2020-02-29", "2020-02-29T12:00:00", "2020-02-29T18:00:00",
		"1900-02-28"},
		`date1904="1"`: {"2024-03-01", "2024-03-01T12:00:00", "2024-03-01T18:00:00", "1904-02-29"}} {
		want := "id,age,c\n\n7," + days[0] + "," + days[1] + "\n\" x \",,TRUE\nw,FALSE,#N/A\n2,1.5,1.5\n" +
			"3.2000000000000002," + days[2] + ",06:00:00\n," + days[3] + ",2020-02-29\n"
		if got, err := readXLSX(t, sheetOf(t, properties, sheet)); err != nil || got != want {
			t.Errorf("%s: %v: got\n%s\nwant\n%s", properties, err, got, want)
		}
	}
}

// What a workbook does not say is not guessed.
func TestXLSXSaysWhatIsNotThere(t *testing.T) {
	for want, sheet := range map[string]string{
		"cell B2 is one of 2 formulas that were saved without their values": `<row r="1"><c r="A1"><v>1</v></c></row>` +
			`<row r="2"><c r="B2"><f>A1</f></c><c r="C2"><f>A1</f><v/></c></row>`,
		"cells are merged (A2:A5, C1:D1)": `<row r="1"><c r="A1"><v>1</v></c></row>` +
			`</sheetData><mergeCells><mergeCell ref="A2:A5"/><mergeCell ref="B1:B1"/><mergeCell ` +
			`ref="C1:D1"/></mergeCells><sheetData>`,
		"refers to text \"9\", which is not there": `<row r="1"><c r="A1" ` +
			`t="s"><v>9</v></c></row>`,
		"row 1 comes after row 2": `<row r="2"><c r="A2"><v>1</v></c></row>` +
			`<row r="1"><c r="A1"><v>1</v></c></row>`,
	} {
		if _, err := readXLSX(t, sheetOf(t, "", sheet)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// Where a record may show in no other, a cell is all that is wrong.
	data := sheetOf(t, "", `<row r="1"><c r="A1"><v>1</v></c></row><row r="2"><c r="A2" t="s"><v>9</v></c></row><row `+
		`r="3"><c r="A3"><f>A1</f></c></row></sheetData><mergeCells><mergeCell ref="A2:A5"/></mergeCells><sheetData>`)
	r := testkit.Get(TolerantXLSX(bytes.NewReader(data), int64(len(data))))(t)
	defer r.Close()
	if got := string(testkit.Get(io.ReadAll(r))(t)); got != "1\nno value was saved\nno value was saved\n" {
		t.Errorf("got %q", got)
	}
	if _, err := readXLSX(t, []byte("\xd0\xcf\x11\xe0 of OLE")); err == nil ||
		!strings.Contains(err.Error(), "protected by a password") {
		t.Error(err)
	}
}
