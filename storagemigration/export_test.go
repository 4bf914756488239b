package storagemigration

// PropagationDelay is a variable for tests.
var PropagationDelay = &propagationDelay
