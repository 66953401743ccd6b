* Makes pspp.sav and pspp.zsav by PSPP 1.6.2 (of Debian 12), with labels, missing values and long texts.
DATA LIST LIST /id (A5) x (F8.2) sex (F1) d (DATE11) t (DATETIME20) stay (TIME10) way_of_discharge (A12).
BEGIN DATA.
"a1" 1.5 1 "01-JAN-1990" "03-FEB-2021 10:11:12" "01:00:00" "lang lang wr"
"a2" 99 2 "29-FEB-2000" "03-FEB-2021 10:11:12" "49:30:00" "none"
"a3" . 9 "31-DEC-1899" "03-FEB-2021 00:00:00" "00:00:01" "b"
END DATA.
STRING discharge_letter (A700).
COMPUTE discharge_letter = CONCAT(RPAD("", 300, "k"), RPAD("", 300, "m"), "end").
VARIABLE LABELS x "a number".
VALUE LABELS sex 1 'male' 2 'female' 9 'unknown' /way_of_discharge "none" "nobody at all".
MISSING VALUES sex (9) x (90 THRU HI).
MISSING VALUES way_of_discharge ("b").
SAVE OUTFILE="pspp.sav" /UNCOMPRESSED.
SAVE OUTFILE="pspp.zsav" /ZCOMPRESSED.
