#include "check.hpp"
int main() { return 0; }
