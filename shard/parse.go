package shard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse returns the selector of a query parameter shardSelector, see [Selector.String]. Bounds have 16 hexadecimal digits, and all
// ranges are of one field.
func Parse(text string) (Selector, error) {
	var field Field
	var ranges []Range
	for call := range strings.SplitSeq(text, "||") {
		of, r, err := parseCall(strings.TrimSpace(call))
		if err != nil {
			return Selector{}, fmt.Errorf("parse shard selector: %w", err)
		}
		if field != "" && field != of {
			return Selector{}, fmt.Errorf("parse shard selector: all ranges must use the same field: %s and %s", field, of)
		}
		field = of
		ranges = append(ranges, r)
	}
	return New(field, ranges...), nil
}

// parseCall parses shardRange(field, 'start', 'end').
func parseCall(call string) (Field, Range, error) {
	arguments, isCall := strings.CutPrefix(call, "shardRange(")
	arguments, isClosed := strings.CutSuffix(arguments, ")")
	parts := strings.Split(arguments, ",")
	if !isCall || !isClosed || len(parts) != 3 {
		return "", Range{}, fmt.Errorf("%.80q is not shardRange(field, 'start', 'end')", call)
	}
	name, isOfObject := strings.CutPrefix(strings.TrimSpace(parts[0]), "object.")
	field := Field(name)
	if !isOfObject || field != UID && field != Namespace {
		return "", Range{}, fmt.Errorf("the field %.80q is neither object.%s nor object.%s", parts[0], UID, Namespace)
	}
	r, err := parseRange(unquote(parts[1]), unquote(parts[2]))
	return field, r, err
}

// unquote returns the text of a string literal. Anything else is not a bound.
func unquote(literal string) string {
	literal = strings.TrimSpace(literal)
	if len(literal) >= 2 && (literal[0] == '\'' || literal[0] == '"') && literal[len(literal)-1] == literal[0] {
		return literal[1 : len(literal)-1]
	}
	return ""
}

// parseRange returns the range of an inclusive start and an exclusive end.
func parseRange(start, end string) (Range, error) {
	first, err := parseBound(start)
	if err != nil {
		return Range{}, err
	}
	if end == "0x10000000000000000" {
		return Range{first, math.MaxUint64}, nil
	}
	last, err := parseBound(end)
	if err != nil {
		return Range{}, err
	}
	if first >= last {
		return Range{}, fmt.Errorf("the start %s must be less than the end %s", start, end)
	}
	return Range{first, last - 1}, nil
}

func parseBound(text string) (uint64, error) {
	digits, hasPrefix := strings.CutPrefix(text, "0x")
	bound, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || !hasPrefix || len(digits) != 16 || digits != strings.ToLower(digits) {
		return 0, fmt.Errorf("the bound %.80q is not a literal of 0x and 16 lowercase hexadecimal digits", text)
	}
	return bound, nil
}
