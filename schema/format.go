package schema

import (
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
)

// checkedFormat returns a format as the server looks it up if it validates the format for values of a type of a custom resource,
// otherwise "".
func checkedFormat(typ, format string) string {
	if typ != "" && typ != "string" || format == "" {
		return ""
	}
	name := strings.ReplaceAll(format, "-", "")
	if _, found := formats()[name]; !found {
		return ""
	}
	return name
}

// format validates the format of a string.
func (v *validator) format(value string, s *Schema) {
	isValid := true
	switch name := checkedFormat(s.Type, s.Format); {
	case v.isTyped:
		isValid = isTypedFormat(s.Format, value)
	case name == "" && strings.Contains(rareFormats, " "+strings.ReplaceAll(s.Format, "-", "")+" "):
		v.note(v.field() + ": the format " + s.Format)
	case name == "":
		v.note(v.field() + ": the format " + shortened(s.Format) + " is unknown to Kubernetes")
	case v.spend(len(value) / 64):
		isValid = formats()[name](value)
	}
	if !isValid {
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

// formats are the formats that the server validates in custom resources, without hyphens. They are those of the package strfmt of
// kube-openapi, with its deviations from the standards.
var formats = sync.OnceValue(func() map[string]func(string) bool {
	return map[string]func(string) bool{
		"bsonobjectid": func(s string) bool { b, err := hex.DecodeString(s); return err == nil && len(b) == 12 },
		"uri":          isRequestURI,
		"email":        func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address != "" },
		"hostname":     isHostname,
		"ipv4":         func(s string) bool { return netutils.ParseIPSloppy(s) != nil && strings.Contains(s, ".") },
		"ipv6":         func(s string) bool { return net.ParseIP(s) != nil && strings.Contains(s, ":") },
		"cidr":         func(s string) bool { _, _, err := netutils.ParseCIDRSloppy(s); return err == nil },
		"mac":          func(s string) bool { _, err := net.ParseMAC(s); return err == nil },
		"uuid":         matcher(uuidPattern("[0-9a-f]", "[0-9a-f]")),
		"uuid3":        matcher(uuidPattern("3", "[0-9a-f]")),
		"uuid4":        matcher(uuidPattern("4", "[89ab]")),
		"uuid5":        matcher(uuidPattern("5", "[89ab]")),
		"ssn":          matcher(`^\d{3}[- ]\d{2}[- ]\d{4}$`),
		"hexcolor":     matcher(`^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`),
		"byte":         isBase64,
		"password":     func(string) bool { return true },
		"date":         func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
		"duration":     isDuration,
		"datetime":     isDateTime,
		"k8sshortname": func(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 },
		"k8slongname":  func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 },
	}
})

// rareFormats are validated by the server, but not here.
const rareFormats = " isbn isbn10 isbn13 creditcard rgbcolor "

// uuidPattern returns the pattern of a UUID by the first digits of its third and fourth group.
func uuidPattern(version, variant string) string {
	return `(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?` + version + `[0-9a-f]{3}-?` + variant + `[0-9a-f]{3}-?[0-9a-f]{12}$`
}

func isRequestURI(s string) bool { _, err := url.ParseRequestURI(s); return err == nil }

// isBase64 reports whether s is base64 with padding, and not empty.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != "" && !strings.ContainsAny(s, "\r\n")
}

const (
	maxHostname = 255
	maxLabel    = 63
)

// isHostname accepts letters and symbols of any script. A name with dots ends in a label of letters.
func isHostname(s string) bool {
	if len(s) > maxHostname {
		return false
	}
	labels := strings.Split(s, ".")
	for i, label := range labels {
		switch isLast := i == len(labels)-1; {
		case len(label) > maxLabel:
			return false
		case isLast && i > 0:
			if !topLabel(label) {
				return false
			}
		case !hostLabel(label):
			return false
		}
	}
	return true
}

var (
	topLabel  = matcher(`^[a-zA-Z\p{L}]{2,63}$`)
	hostLabel = matcher(`^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$`)
)

// durationUnits are the units of a duration that Go does not parse: "3 days".
var durationUnits = matcher(`(?i)\d+\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)`)

func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return err == nil || durationUnits(s)
}

var clock = matcher(`^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$`)

// isDateTime accepts offsets of any size, and any character before the fraction of a second.
func isDateTime(s string) bool {
	parts := strings.Split(strings.ToLower(s), "t")
	if len(parts) < 2 {
		return false
	}
	_, err := time.Parse(time.DateOnly, parts[0])
	return err == nil && clock(parts[1])
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

// matcher returns a function that matches a string with a pattern, which it compiles at its first use.
func matcher(pattern string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(s string) bool { return compiled().MatchString(s) }
}
