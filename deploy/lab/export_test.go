package lab

// Places gives tests outside the package its list of directories.
var Places = places
