package schema

import (
	"encoding/base64"
	"math"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/anykind/anykind/schema/internal/format"
)

// numeric is a number as the server reads it from JSON: an integer, or a float that is none.
type numeric struct {
	integer   int64
	float     float64
	isInteger bool
}

const maxInt64 = 1 << 63 // as a float

// toNumber returns the number of a value. A float without a fraction is written as an integer.
func toNumber(value any) (n numeric, isNumber bool) {
	switch value := value.(type) {
	case int64:
		return numeric{value, float64(value), true}, true
	case int:
		return numeric{int64(value), float64(value), true}, true
	case int32:
		return numeric{int64(value), float64(value), true}, true
	case float64:
		if value == math.Trunc(value) && value >= -maxInt64 && value < maxInt64 {
			return numeric{int64(value), value, true}, true
		}
		return numeric{float: value}, true
	}
	return numeric{}, false
}

func (n numeric) value() any {
	if n.isInteger {
		return n.integer
	}
	return n.float
}

// number validates formats and bounds.
func (v *validator) number(n numeric, s *Schema) {
	switch {
	case s.Type == "integer" && s.Format == "int32" && int64(int32(n.integer)) != n.integer,
		s.Type == "number" && s.Format == "float" && math.Abs(n.float) > math.MaxFloat32:
		v.fail("format", s, n.value())
	}
	if s.Maximum != nil && !s.isBelow(n, *s.Maximum, s.ExclusiveMaximum) {
		v.fail("maximum", s, n.value())
	}
	if s.Minimum != nil && !s.isAbove(n, *s.Minimum, s.ExclusiveMinimum) {
		v.fail("minimum", s, n.value())
	}
	if s.MultipleOf != nil && !s.isMultiple(n, *s.MultipleOf) {
		v.fail("multipleOf", s, n.value())
	}
}

// isBound reports whether the server can compare a value of the schema with a bound: a bound of integers is an integer.
func (s *Schema) isBound(bound float64) bool {
	if s.Type != "integer" {
		return true
	}
	if s.Format == "int32" {
		return bound == float64(int32(bound))
	}
	return bound == math.Trunc(bound) && math.Abs(bound) < maxInt64
}

// isBelow reports whether the server accepts a number by its maximum. It compares integers with the bound's integer part.
func (s *Schema) isBelow(n numeric, bound float64, isExclusive bool) bool {
	switch {
	case !s.isBound(bound):
		return false
	case n.isInteger && math.Abs(bound) < maxInt64:
		return n.integer < int64(bound) || !isExclusive && n.integer == int64(bound)
	}
	return n.float < bound || !isExclusive && n.float == bound
}

// isAbove is the opposite of isBelow.
func (s *Schema) isAbove(n numeric, bound float64, isExclusive bool) bool {
	switch {
	case !s.isBound(bound):
		return false
	case n.isInteger && math.Abs(bound) < maxInt64:
		return n.integer > int64(bound) || !isExclusive && n.integer == int64(bound)
	}
	return n.float > bound || !isExclusive && n.float == bound
}

// isMultiple reports whether the server accepts a number by multipleOf. It divides integers by the factor's integer part.
func (s *Schema) isMultiple(n numeric, factor float64) bool {
	if !s.isBound(factor) {
		return false
	}
	if n.isInteger {
		divisor := int64(factor)
		return divisor > 0 && n.integer%divisor == 0
	}
	if factor <= 0 {
		return false
	}
	quotient := n.float / factor
	if factor < 1 {
		quotient = 1 / factor * n.float
	}
	return math.Abs(quotient-math.Round(quotient)) < 1e-9*math.Abs(quotient)
}

// text validates a string.
func (v *validator) text(value string, s *Schema) {
	if s.MaxLength != nil || s.MinLength != nil {
		length := int64(utf8.RuneCountInString(value))
		if s.MaxLength != nil && length > *s.MaxLength {
			v.fail("maxLength", s, value)
		}
		if s.MinLength != nil && length < *s.MinLength {
			v.fail("minLength", s, value)
		}
	}
	if s.pattern != nil {
		v.matches(value, s)
	}
	if s.Format != "" {
		v.format(value, s)
	}
	if v.isTyped && s.Name == quantityName && !isQuantity(value) {
		v.reject("format", "is "+quoted(value)+", the schema says a quantity", "write 500m, 2 or 1Gi")
	}
}

// maxPattern bounds the length of a pattern that is compiled.
const maxPattern = 16 << 10

// pattern is a regular expression, compiled at its first use.
type pattern struct {
	compiling sync.Once
	compiled  *regexp.Regexp // nil if it cannot be compiled
	err       error
}

func (p *pattern) compile(text string) (*regexp.Regexp, error) {
	p.compiling.Do(func() { p.compiled, p.err = regexp.Compile(text) })
	return p.compiled, p.err
}

func (v *validator) matches(value string, s *Schema) {
	if len(s.Pattern) > maxPattern {
		v.note(v.field() + ": its pattern is longer than 16 KiB")
		return
	}
	if !v.spend(len(value) * len(s.Pattern) / 64) {
		return
	}
	compiled, err := s.pattern.compile(s.Pattern)
	switch {
	case err != nil:
		v.note(v.field() + ": its pattern is not a regular expression of Go: " + shortened(err.Error()))
	case !compiled.MatchString(value):
		v.fail("pattern", s, value)
	}
}

// isOfEnum reports whether an enum has a value. Go code has a default in place of an empty string, and the server ignores the status
// of a new object.
func (v *validator) isOfEnum(value any, s *Schema) bool {
	if v.isTyped && (value == "" || len(v.path) > 0 && v.path[0].name == "status") {
		return true
	}
	for _, allowed := range s.Enum {
		if equalJSON(value, allowed) {
			return true
		}
	}
	return false
}

// equalJSON reports whether a value equals an enum's. The server converts numbers to the type of the enum's number.
func equalJSON(value, allowed any) bool {
	n, isNumber := toNumber(value)
	m, isOther := toNumber(allowed)
	switch {
	case isNumber && isOther && m.isInteger:
		return n.isInteger && n.integer == m.integer || !n.isInteger && int64(n.float) == m.integer
	case isNumber && isOther:
		return n.float == m.float
	case isNumber || isOther:
		return false
	}
	return reflect.DeepEqual(value, allowed)
}

// hasStringFormat reports whether the server validates the format of strings in a custom resource.
func (s *Schema) hasStringFormat() bool {
	if s.Type != "" && s.Type != "string" || s.Format == "" {
		return false
	}
	_, isKnown := format.Validator(s.Format)
	return isKnown
}

// format validates the format of a string.
func (v *validator) format(value string, s *Schema) {
	if v.isTyped {
		if !isTypedFormat(s.Format, value) {
			v.fail("format", s, value)
		}
		return
	}
	isValid, isKnown := format.Validator(s.Format)
	switch {
	case !isKnown:
		v.note(v.field() + ": the format " + shortened(s.Format) + " is unknown to Kubernetes")
	case isValid == nil:
		v.note(v.field() + ": the format " + s.Format)
	case v.spend(len(value)/64) && !isValid(value):
		v.fail("format", s, value)
	}
}

// isTypedFormat reports whether Go code decodes a string of a format.
func isTypedFormat(format, value string) bool {
	var err error
	switch format {
	case "date-time":
		_, err = time.Parse(time.RFC3339, value)
	case "byte":
		_, err = base64.StdEncoding.DecodeString(value)
	}
	return err == nil
}

// formatHint gives an example of a format.
func formatHint(format string) string {
	switch strings.ReplaceAll(format, "-", "") {
	case "datetime":
		return "write 2006-01-02T15:04:05Z"
	case "date":
		return "write 2006-01-02"
	case "duration":
		return "write 1h30m"
	case "byte":
		return "encode it as base64"
	case "int32":
		return "it has at most 32 bits"
	case "uri":
		return "write https://example.com or /path"
	}
	return ""
}

const quantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// isQuantity matches https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
var isQuantity = format.Matcher(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)
