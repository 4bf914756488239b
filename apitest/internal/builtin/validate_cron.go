package builtin

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// schedule checks the schedule of a CronJob. A TZ in the schedule, from before spec.timeZone existed, is tolerated only if old
// has it, too.
func (c *checker) schedule(at *field.Path, spec, old object) {
	schedule := nested.String(spec, "schedule")
	at = at.Child("schedule")
	if err := parseSchedule(schedule); err != nil {
		c.invalid(at, schedule, err.Error())
	}
	hasZone := strings.Contains(schedule, "TZ")
	hadZone := strings.Contains(nested.String(old, "schedule"), "TZ")
	switch {
	case hasZone && !hadZone:
		c.invalid(at, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	case hasZone && spec["timeZone"] != nil:
		c.invalid(at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	}
}

// parseSchedule returns an error for a malformed schedule. It recovers from panics of the parser.
func parseSchedule(schedule string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	_, err = cron.ParseStandard(schedule)
	return err
}

var zonePart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z\.\-_0-9+]{1,14}$`) })

func (c *checker) timeZone(at *field.Path, spec object) {
	zone, found := spec["timeZone"].(string)
	if !found {
		return
	}
	at = at.Child("timeZone")
	if zone == "" {
		c.invalid(at, zone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart().MatchString(part) {
			c.invalid(at, zone, "unknown time zone "+zone)
			return
		}
	}
	if strings.EqualFold(zone, "Local") {
		c.invalid(at, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		c.invalid(at, zone, err.Error())
	}
}
