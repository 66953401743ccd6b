* Makes pspp.sav and pspp.zsav by PSPP 1.6.2 (of Debian 12), with labels, missing values and long texts.
DATA LIST LIST /id (A5) x (F8.2) sex (F1) d (DATE11) t (DATETIME20) w (A12).
BEGIN DATA.
"a1" 1.5 1 "01-JAN-1990" "03-FEB-2021 10:11:12" "lang lang wr"
"a2" 99 2 "29-FEB-2000" "03-FEB-2021 10:11:12" "none"
"a3" . 9 "31-DEC-1899" "03-FEB-2021 00:00:00" "b"
END DATA.
STRING big (A700).
COMPUTE big = CONCAT(RPAD("", 300, "k"), RPAD("", 300, "m"), "end").
VARIABLE LABELS x "a number".
VALUE LABELS sex 1 'male' 2 'female' 9 'unknown' /w "none" "nobody at all".
MISSING VALUES sex (9) x (90 THRU HI).
MISSING VALUES w ("b").
SAVE OUTFILE="pspp.sav" /UNCOMPRESSED.
SAVE OUTFILE="pspp.zsav" /ZCOMPRESSED.
