package schema

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/anykind/anykind/schema/internal/format"
)

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
