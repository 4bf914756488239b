package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// DryRun is a mode of --dry-run.
type DryRun int

// The modes of --dry-run.
const (
	DryRunNone   DryRun = iota
	DryRunClient        // nothing is sent
	DryRunServer        // the server validates and stores nothing
)

// Suffix follows the operation in messages.
func (d DryRun) Suffix() string {
	switch d {
	case DryRunClient:
		return " (dry run)"
	case DryRunServer:
		return " (server dry run)"
	case DryRunNone:
	}
	return ""
}

// dryRunAlone is the value of --dry-run without an argument. It means client.
const dryRunAlone = "unchanged"

// addDryRunFlag defines --dry-run. Its value is for parseDryRun.
func addDryRunFlag(fs *pflag.FlagSet, value *string) {
	fs.StringVar(value, "dry-run", "none", `Must be "none", "server", or "client". If client strategy, only print the object that would be sent, without sending it. If server strategy, submit server-side request without persisting the resource.`)
	fs.Lookup("dry-run").NoOptDefVal = dryRunAlone
}

// parseDryRun parses the value of --dry-run. warn prints a deprecation.
func parseDryRun(text string, warn func(format string, args ...any)) (DryRun, error) {
	switch text {
	case "none":
		return DryRunNone, nil
	case "client":
		return DryRunClient, nil
	case "server":
		return DryRunServer, nil
	case dryRunAlone:
		warn("Warning: --dry-run is deprecated and can be replaced with --dry-run=client.")
		return DryRunClient, nil
	}
	isClient, err := strconv.ParseBool(text)
	if err != nil {
		return DryRunNone, fmt.Errorf("Invalid dry-run value (%v). Must be \"none\", \"server\", or \"client\".", text)
	}
	mode := DryRunNone
	name := "none"
	if isClient {
		mode = DryRunClient
		name = "client"
	}
	warn("Warning: --dry-run=%s is deprecated (boolean value) and can be replaced with --dry-run=%s.", text, name)
	return mode, nil
}
