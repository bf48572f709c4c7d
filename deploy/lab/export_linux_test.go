package lab

var MakeCgroup = makeCgroup
