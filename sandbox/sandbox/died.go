//go:build unix

package sandbox

import (
	"fmt"
	"regexp"
	"strings"
)

// DiedError says that a component ended without being asked to.
type DiedError struct {
	Component string // its name, such as kube-apiserver-2
	Reason    error  // how the process ended
	// Disk is the error of writing to the disk of the cluster's folder, if that was
	// full. The log may then end before the line that names the cause.
	Disk     error
	LogCause string // the first line of its log that names a fatal error, or empty
	LogTail  string // the last lines it wrote
	LogFile  string
}

func (e *DiedError) Error() string {
	disk := ""
	if e.Disk != nil {
		disk = fmt.Sprintf("; the disk is full (%v)", e.Disk)
	}
	return fmt.Sprintf("%s died (%v)%s; %s", e.Component, e.Reason, disk, logExcerpt{e.LogCause, e.LogTail})
}

func (e *DiedError) Unwrap() error { return e.Reason }

func (e *DiedError) addressInUse() bool {
	const text = "address already in use"
	return strings.Contains(e.LogCause, text) || strings.Contains(e.LogTail, text)
}

var unknownGate = regexp.MustCompile(`unrecognized feature gate: (\w+)`)

// unknownGate is the feature gate the component ended over, if it did.
func (e *DiedError) unknownGate() string {
	if m := unknownGate.FindStringSubmatch(e.LogTail); m != nil {
		return m[1]
	}
	return ""
}
