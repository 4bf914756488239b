package storagemigration

// Delays for tests.
var (
	PropagationDelay = &propagationDelay
	StartDelay       = &startDelay
)
